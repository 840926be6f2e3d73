package main

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"
)

// recording is one run of an operation: what was sent, and what it was about.
type recording struct {
	order, key string
	exchanges  []exchange
}

// script is an operation's statements for pgbench. Values that are the same in each run are variables of pgbench's; those
// that are not are made from n, the run's number, or from a hash of it. PostgreSQL makes texts and ids of those, since
// pgbench has numbers only: some tenths of a microsecond each.
type script struct {
	exchanges []exchange // as they were recorded, once
	texts     [][]string // for pgbench
	variables map[string]string
	hashes    int // how many of n the texts need
}

// orderOf is the id of the n-th order that a script pays. They come one after the other, as the service's own do.
func orderOf(n string) string { return ordered("ffee", n) }

// keyOf is the key under which that is done, as long as an id, by the hash of its number.
func keyOf(hash string) string { return hex(hash, 36) }

// hex is a number as a text of so many digits.
func hex(number string, digits int) string {
	return "lpad(to_hex(CAST(" + number + " AS bigint)), " + strconv.Itoa(digits) + ", '0')"
}

func ordered(prefix, n string) string { return "CAST('" + prefix + "' || " + hex(n, 28) + " AS uuid)" }

// scriptOf makes the script from two recordings. What differs between them is what differs from run to run. Errors: they
// are not of the same statements, or something differs of which it is not known how to make more.
func scriptOf(one, other recording) (script, error) {
	s := script{exchanges: one.exchanges, variables: map[string]string{}}
	if len(one.exchanges) == 0 || len(one.exchanges) != len(other.exchanges) {
		return s, fmt.Errorf("the service has made %d and %d round trips for the same", len(one.exchanges), len(other.exchanges))
	}
	w := &writer{variables: s.variables, salts: map[string]string{}, one: one, other: other}
	for i, e := range one.exchanges {
		if len(e) != len(other.exchanges[i]) {
			return s, errors.New("the service has sent more statements for one run than for the other")
		}
		var texts []string
		for j, statement := range e {
			text, err := w.statement(statement, other.exchanges[i][j])
			if err != nil {
				return s, err
			}
			texts = append(texts, text)
		}
		s.texts = append(s.texts, texts)
	}
	s.hashes = len(w.salts)
	return s, nil
}

// roundTrips is how often the service waits for the database.
func (s script) roundTrips() int { return len(s.exchanges) }

// statements is how many it sends.
func (s script) statements() (n int) {
	for _, e := range s.exchanges {
		n += len(e)
	}
	return n
}

// text is the script's file. next says what n is in the next run. Pipelined, what travels together for the service does
// so here.
func (s script) text(next string, pipelined bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\\set i :i + 1\n\\set n %s\n\\set key hash_fnv1a(:n, 0)\n", next)
	for i := range s.hashes {
		fmt.Fprintf(&b, "\\set h%d hash_fnv1a(:n, %d)\n", i, i+1)
	}
	for _, texts := range s.texts {
		if pipelined {
			b.WriteString("\\startpipeline\n")
		}
		for _, text := range texts {
			b.WriteString(text + ";\n")
		}
		if pipelined {
			b.WriteString("\\endpipeline\n")
		}
	}
	return b.String()
}

// defines are pgbench's arguments for the variables.
func (s script) defines() (arguments []string) {
	for _, name := range slices.Sorted(maps.Keys(s.variables)) {
		arguments = append(arguments, "-D", name+"="+s.variables[name])
	}
	return arguments
}

type writer struct {
	one, other recording
	variables  map[string]string
	salts      map[string]string // of values that are new in each run, by both recordings' values
}

var placeholder = regexp.MustCompile(`\$(\d+)`)

func (w *writer) statement(a, b sent) (text string, err error) {
	if a.sql != b.sql || len(a.args) != len(b.args) {
		return "", fmt.Errorf("the service has sent other statements for the same: %s, %s", a.sql, b.sql)
	}
	text = placeholder.ReplaceAllStringFunc(a.sql, func(number string) string {
		i, convertErr := strconv.Atoi(number[1:])
		if convertErr != nil || i < 1 || i > len(a.args) {
			err = errors.Join(err, fmt.Errorf("there is no argument %s in %s", number, a.sql))
			return number
		}
		value, valueErr := w.value(a.args[i-1], b.args[i-1])
		if valueErr != nil {
			err = errors.Join(err, fmt.Errorf("argument %s of %s: %w", number, a.sql, valueErr))
		}
		return value
	})
	return text, err
}

// value is what stands in the script for an argument.
func (w *writer) value(a, b argument) (string, error) {
	name, err := typeName(a.typ)
	switch {
	case err != nil:
		return "", err
	case a.null != b.null || a.typ != b.typ:
		return "", errors.New("it is NULL, or of another type, in one run only")
	case a.null: // pgbench's variables are never NULL
		return "CAST(NULL AS " + name + ")", nil
	case a.text == b.text:
		return ":" + w.constant(a.text), nil
	}
	switch a.typ {
	case pgtype.ByteaOID, pgtype.JSONBOID: // a document: its bytes are as many in each run
		return ":" + w.constant(a.text), nil
	case pgtype.TimestamptzOID:
		return "(CAST(:" + w.constant(a.text) + " AS timestamptz) + CAST(:n AS bigint) * interval '1 microsecond')", nil
	case pgtype.UUIDOID:
		return w.anew(a.text, b.text), nil
	case pgtype.TextOID, pgtype.VarcharOID:
		made, err := w.made(a.text, b.text)
		return "(" + made + ")", err
	default:
		return "", fmt.Errorf("it is %q in one run, %q in the other", a.text, b.text)
	}
}

// named are what of a text can be new in each run: an id, with hyphens or without, or a hash.
var named = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{64}|[0-9a-f]{32}`)

// made is an expression for a text that is new in each run.
func (w *writer) made(a, b string) (string, error) {
	if len(a) != len(b) || named.ReplaceAllString(a, "") != named.ReplaceAllString(b, "") {
		return "", fmt.Errorf("it is %q in one run, %q in the other", a, b)
	}
	var parts []string
	end := 0
	for _, at := range named.FindAllStringIndex(a, -1) {
		if end < at[0] {
			parts = append(parts, "CAST(:"+w.constant(a[end:at[0]])+" AS text)")
		}
		parts = append(parts, "CAST("+w.anew(a[at[0]:at[1]], b[at[0]:at[1]])+" AS text)")
		end = at[1]
	}
	if end < len(a) {
		parts = append(parts, "CAST(:"+w.constant(a[end:])+" AS text)")
	}
	return strings.Join(parts, " || "), nil
}

// anew is an expression for an id, of type uuid, or a hash. The same one is the same wherever it stands.
func (w *writer) anew(a, b string) string {
	if a == b {
		return ":" + w.constant(a)
	}
	if a == w.one.order && b == w.other.order {
		return orderOf(":n")
	}
	if a == w.one.key && b == w.other.key {
		return keyOf(":key")
	}
	if len(a) == 36 && a[14] == '7' { // version 7: ascending (RFC 9562 §5.7)
		return ordered("ffff", ":n")
	}
	hash, known := w.salts[a+b]
	if !known {
		hash = fmt.Sprintf(":h%d", len(w.salts))
		w.salts[a+b] = hash
	}
	if len(a) < 36 || len(a) == 64 {
		return hex(hash, len(a))
	}
	return "CAST(" + hex(hash, 32) + " AS uuid)"
}

// constant is the name of a variable with this value.
func (w *writer) constant(value string) string {
	for name, has := range w.variables {
		if has == value {
			return name
		}
	}
	name := "c" + strconv.Itoa(len(w.variables))
	w.variables[name] = value
	return name
}

func typeName(typ uint32) (string, error) {
	t, known := pgtype.NewMap().TypeForOID(typ)
	if !known {
		return "", fmt.Errorf("type %d is not known", typ)
	}
	return t.Name, nil
}
