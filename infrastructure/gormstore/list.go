package gormstore

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// list is a parameter with one element for each row of a statement for many, in PostgreSQL's binary form: to read the text
// form takes the server longer than much of what it does with it.
type list []byte

// elements are PostgreSQL's types that a list may have, by their names.
var elements = map[string]element{
	"text":        {pgtype.TextOID, pgtype.TextArrayOID, appendText},
	"uuid":        {pgtype.UUIDOID, pgtype.UUIDArrayOID, appendUUID},
	"bigint":      {pgtype.Int8OID, pgtype.Int8ArrayOID, appendBigint},
	"integer":     {pgtype.Int4OID, pgtype.Int4ArrayOID, appendInteger},
	"boolean":     {pgtype.BoolOID, pgtype.BoolArrayOID, appendBoolean},
	"timestamptz": {pgtype.TimestamptzOID, pgtype.TimestamptzArrayOID, appendTime},
	"bytea":       {pgtype.ByteaOID, pgtype.ByteaArrayOID, appendBytes},
	"jsonb":       {pgtype.JSONBOID, pgtype.JSONBArrayOID, appendJSON},
}

// element is one type: its number, that of its arrays, and how a value of it is written. What it cannot write it leaves
// out, with false.
type element struct {
	oid    uint32
	array  uint32
	append func(to []byte, value any) ([]byte, bool)
}

// listOf is the list of one parameter.
func listOf(typ string, rows [][]any, parameter int) (list, error) {
	e, known := elements[typ]
	if !known {
		return nil, fmt.Errorf("gormstore: there is no list of %s", typ)
	}
	const dimensions, hasNulls, from = 1, 1, 1
	l := make([]byte, 0, 20+44*len(rows))
	for _, n := range []uint32{dimensions, hasNulls, e.oid, uint32(len(rows)), from} { //nolint:gosec // companyAtMost
		l = binary.BigEndian.AppendUint32(l, n)
	}
	for _, args := range rows {
		start := len(l) + 4
		l = append(l, 255, 255, 255, 255) // NULL, unless the length follows
		value := args[parameter]
		if b, isBytes := value.([]byte); value == nil || isBytes && b == nil {
			continue
		}
		var ok bool
		if l, ok = e.append(l, value); !ok {
			return nil, fmt.Errorf("gormstore: %T is no element of a list of %s", value, typ)
		}
		binary.BigEndian.PutUint32(l[start-4:], uint32(len(l)-start)) //nolint:gosec // far below 4 GiB
	}
	return l, nil
}

func appendText(to []byte, value any) ([]byte, bool) {
	s, ok := value.(string)
	return append(to, s...), ok
}

func appendUUID(to []byte, value any) ([]byte, bool) {
	s, _ := value.(string)
	id, err := uuid.Parse(s)
	return append(to, id[:]...), err == nil
}

func appendBigint(to []byte, value any) ([]byte, bool) {
	n, ok := value.(int64)
	if i, isInt := value.(int); isInt {
		n, ok = int64(i), true
	}
	return binary.BigEndian.AppendUint64(to, uint64(n)), ok //nolint:gosec // its bits
}

func appendInteger(to []byte, value any) ([]byte, bool) {
	n, ok := value.(int)
	return binary.BigEndian.AppendUint32(to, uint32(int32(n))), ok && n == int(int32(n)) //nolint:gosec // compared
}

func appendBoolean(to []byte, value any) ([]byte, bool) {
	b, ok := value.(bool)
	if b {
		return append(to, 1), ok
	}
	return append(to, 0), ok
}

// postgresEpoch is what PostgreSQL counts microseconds from.
var postgresEpoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()

func appendTime(to []byte, value any) ([]byte, bool) {
	t, ok := value.(time.Time)
	return binary.BigEndian.AppendUint64(to, uint64(t.UnixMicro()-postgresEpoch)), ok //nolint:gosec // its bits
}

func appendBytes(to []byte, value any) ([]byte, bool) {
	b, ok := value.([]byte)
	return append(to, b...), ok
}

func appendJSON(to []byte, value any) ([]byte, bool) {
	const version = 1
	s, ok := value.(string)
	return append(append(to, version), s...), ok
}

// learnLists has a new connection send lists as they are.
func learnLists(_ context.Context, conn *pgx.Conn) error {
	for _, e := range elements {
		known, ok := conn.TypeMap().TypeForOID(e.array)
		if !ok {
			return fmt.Errorf("gormstore: pgx knows no type %d", e.array)
		}
		conn.TypeMap().RegisterType(&pgtype.Type{Name: known.Name, OID: known.OID, Codec: listCodec{known.Codec}})
	}
	return nil
}

// listCodec is pgx's codec of an array, which does not look into a list.
type listCodec struct{ pgtype.Codec }

// PlanEncode implements pgtype.Codec.
func (c listCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if _, isList := value.(list); isList {
		if format != pgtype.BinaryFormatCode {
			return nil
		}
		return listPlan{}
	}
	return c.Codec.PlanEncode(m, oid, format, value)
}

type listPlan struct{}

// Encode implements pgtype.EncodePlan.
func (listPlan) Encode(value any, buf []byte) ([]byte, error) {
	return append(buf, value.(list)...), nil
}
