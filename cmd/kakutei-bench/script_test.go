package main

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	orderA, orderB = "01930000-0000-7000-8000-00000000000a", "01930000-0000-7000-8000-00000000000b"
	keyA, keyB     = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa", "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb"
)

// twice are two recordings of a statement that has one argument.
func twice(a, b argument) (one, other recording) {
	one = recording{orderA, keyA, []exchange{{{"SELECT $1", []argument{a}}}}}
	other = recording{orderB, keyB, []exchange{{{"SELECT $1", []argument{b}}}}}
	return one, other
}

func TestAnArgumentBecomesWhatItIsInEachRun(t *testing.T) {
	text := func(text string) argument { return argument{typ: pgtype.TextOID, text: text} }
	id := func(text string) argument { return argument{typ: pgtype.UUIDOID, text: text} }
	hash := strings.Repeat("0a", 32)
	for _, c := range []struct {
		name string
		a, b argument
		want string
	}{
		{"the same in both", text("alice"), text("alice"), ":c0"},
		{"NULL", argument{typ: pgtype.ByteaOID, null: true}, argument{typ: pgtype.ByteaOID, null: true}, "CAST(NULL AS bytea)"},
		{"the order", id(orderA), id(orderB), orderOf(":n")},
		{"the order as a text", text(orderA), text(orderB), "(CAST(" + orderOf(":n") + " AS text))"},
		{"the key", text(keyA), text(keyB), "(CAST(" + keyOf(":key") + " AS text))"},
		{
			"another id", id("cccccccc-cccc-4ccc-8ccc-cccccccccccc"), id("dddddddd-dddd-4ddd-8ddd-dddddddddddd"),
			"CAST(" + hex(":h0", 32) + " AS uuid)",
		},
		{
			"an id that ascends", id("01930000-0000-7000-8000-00000000000c"), id("01930000-0000-7000-8000-00000000000d"),
			ordered("ffff", ":n"),
		},
		{
			"a hash with its version", text("v1:" + hash), text("v1:" + strings.Repeat("0b", 32)),
			"(CAST(:c0 AS text) || CAST(" + hex(":h0", 64) + " AS text))",
		},
		{
			"a time",
			argument{typ: pgtype.TimestamptzOID, text: "2026-11-30 01:02:03Z"},
			argument{typ: pgtype.TimestamptzOID, text: "2026-11-30 01:02:04Z"},
			"(CAST(:c0 AS timestamptz) + CAST(:n AS bigint) * interval '1 microsecond')",
		},
		{"a document", argument{typ: pgtype.ByteaOID, text: `\x01`}, argument{typ: pgtype.ByteaOID, text: `\x02`}, ":c0"},
	} {
		s, err := scriptOf(twice(c.a, c.b))
		require.NoError(t, err, c.name)
		assert.Equal(t, "SELECT "+c.want, s.texts[0][0], c.name)
	}
}

func TestWhatIsTheSameInOneRunIsTheSameInTheScript(t *testing.T) {
	one, other := twice(argument{typ: pgtype.UUIDOID, text: orderA}, argument{typ: pgtype.UUIDOID, text: orderB})
	token := func(text string) []argument { return []argument{{typ: pgtype.UUIDOID, text: text}} }
	for range 2 {
		one.exchanges = append(one.exchanges, exchange{{"SELECT $1", token("cccccccc-cccc-4ccc-8ccc-cccccccccccc")}})
		other.exchanges = append(other.exchanges, exchange{{"SELECT $1", token("dddddddd-dddd-4ddd-8ddd-dddddddddddd")}})
	}
	one.exchanges = append(one.exchanges, exchange{{"SELECT $1", token("cccccccc-cccc-4ccc-8ccc-ccccccccccce")}})
	other.exchanges = append(other.exchanges, exchange{{"SELECT $1", token("dddddddd-dddd-4ddd-8ddd-ddddddddddde")}})
	s, err := scriptOf(one, other)
	require.NoError(t, err)
	assert.Equal(t, s.texts[1], s.texts[2])
	assert.NotEqual(t, s.texts[2], s.texts[3])
	assert.Equal(t, 2, s.hashes)
}

// A service that has changed is measured as it is, or not at all.
func TestTwoRunsThatCannotBeToldIntoOneScriptAreRefused(t *testing.T) {
	number := func(text string) argument { return argument{typ: pgtype.Int8OID, text: text} }
	text := func(text string) argument { return argument{typ: pgtype.TextOID, text: text} }
	for name, of := range map[string][2]argument{
		"a number":             {number("1"), number("2")},
		"a text without an id": {text("a"), text("b")},
		"texts of which more than the ids differ": {
			text("a " + orderA), text("b " + orderB),
		},
		"NULL in one": {text(""), {typ: pgtype.TextOID, null: true}},
	} {
		_, err := scriptOf(twice(of[0], of[1]))
		require.Error(t, err, name)
	}
	one, other := twice(text("a"), text("a"))
	other.exchanges[0][0].sql = "SELECT 2, $1"
	_, err := scriptOf(one, other)
	require.Error(t, err, "another statement")
	_, err = scriptOf(one, recording{})
	require.Error(t, err, "none at all")
	one.exchanges[0] = append(one.exchanges[0], sent{sql: "SELECT 1"})
	_, err = scriptOf(one, recording{exchanges: []exchange{{{sql: "SELECT $1"}}}})
	require.Error(t, err, "one more")
}

func TestWhatTravelsTogetherDoesSoInAPipeline(t *testing.T) {
	s := script{
		exchanges: []exchange{{{sql: "BEGIN"}, {sql: "SELECT 1"}}, {{sql: "COMMIT"}}},
		texts:     [][]string{{"BEGIN", "SELECT 1"}, {"COMMIT"}}, variables: map[string]string{"c1": "b", "c0": "a"},
		hashes: 2,
	}
	numbers := "\\set i :i + 1\n\\set n 7\n\\set key hash_fnv1a(:n, 0)\n\\set h0 hash_fnv1a(:n, 1)\n\\set h1 hash_fnv1a(:n, 2)\n"
	assert.Equal(t, numbers+"BEGIN;\nSELECT 1;\nCOMMIT;\n", s.text("7", false))
	assert.Equal(t, numbers+"\\startpipeline\nBEGIN;\nSELECT 1;\n\\endpipeline\n"+
		"\\startpipeline\nCOMMIT;\n\\endpipeline\n", s.text("7", true))
	assert.Equal(t, []string{"-D", "c0=a", "-D", "c1=b"}, s.defines())
	assert.Equal(t, []int{2, 3, 1}, []int{s.roundTrips(), s.statements(), s.commits()})
}
