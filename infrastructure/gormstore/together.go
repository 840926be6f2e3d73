package gormstore

import (
	"fmt"
	"regexp"
	"strings"
)

// together says how a statement of one transaction is sent as one with the same statement of others (group).
type together struct {
	types []string // of its parameters, in PostgreSQL; none: it is always sent alone
	text  string   // if the text for many does not follow from that for one
	told  int      // the parameter, a uuid, by which its answers say whose they are; 0: they have a number
}

// eachOf are the rows of arguments of a statement for many (argumentsOf), and their numbers. One function with one column
// for each parameter is one scan; one function for each parameter is as many, each with a store of its own.
const eachOf = `FROM ROWS FROM (json_to_recordset($1::json) AS (%s)) WITH ORDINALITY AS each_of (%s, nth)`

var placeholder = regexp.MustCompile(`\$(\d+)`)

// forMany is a statement's text for any number of rows of arguments, which are its one parameter. What it answers begins with the number, from 1, of the arguments that the rest of the row is the answer to.
//
// Rows that another transaction holds are passed over: who misses one looks again, alone, and waits for it if it may.
func forMany(one string, t together) (string, error) {
	given, named := make([]string, len(t.types)), make([]string, len(t.types))
	for i, typ := range t.types {
		named[i] = fmt.Sprintf("p%d", i+1)
		given[i] = named[i] + " " + typ
	}
	from := fmt.Sprintf(eachOf, strings.Join(given, ", "), strings.Join(named, ", "))
	each := func(sql string) string { return placeholder.ReplaceAllString(sql, "each_of.p$1") }
	switch {
	case t.text != "":
		return strings.ReplaceAll(each(t.text), "@each", from), nil
	case strings.HasPrefix(one, "SELECT "):
		switch locks := strings.Fields(one); {
		case strings.HasSuffix(strings.Join(locks, " "), " FOR UPDATE"):
			one += " SKIP LOCKED"
		case !strings.HasSuffix(one, " FOR KEY SHARE"):
			one += " OFFSET 0" // a look by the index for each, whatever the planner thinks of the table
		}
		return "SELECT each_of.nth, answer.* " + from + " CROSS JOIN LATERAL (" + each(one) + ") AS answer", nil
	case strings.HasPrefix(one, "INSERT "):
		into, values, found := strings.Cut(one, " VALUES (")
		list, rest, closed := cutClosing(values)
		if found && closed && !strings.Contains(rest, "RETURNING") {
			return into + " SELECT " + each(list) + " " + from + rest, nil
		}
	case strings.HasPrefix(one, "UPDATE "):
		if set, where, found := strings.Cut(one, " WHERE "); found && !strings.Contains(where, "RETURNING") {
			return each(set) + " " + from + " WHERE " + each(where), nil
		}
	}
	return "", fmt.Errorf("gormstore: there is no form for many of %q", one)
}

// cutClosing cuts at the parenthesis that closes one before the text.
func cutClosing(text string) (inside, after string, found bool) {
	depth := 1
	for i, c := range text {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 {
			return text[:i], text[i+1:], true
		}
	}
	return text, "", false
}
