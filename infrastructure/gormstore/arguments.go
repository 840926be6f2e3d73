package gormstore

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// argumentsOf are rows of arguments as one JSON document, each an object with the members p1, p2 and so on: what forMany
// takes apart again. PostgreSQL takes some microseconds for a row so, and twenty for each list if every parameter is one.
func argumentsOf(types []string, rows [][]any) (string, error) {
	document := make([]byte, 0, 64*len(types)*len(rows))
	for _, args := range rows {
		document = append(document, ",{"...)
		for p, typ := range types {
			if p > 0 {
				document = append(document, ',')
			}
			document = append(document, `"p`...)
			document = strconv.AppendInt(document, int64(p+1), 10)
			document = append(document, `":`...)
			var ok bool
			if document, ok = appendArgument(document, typ, args[p]); !ok {
				return "", fmt.Errorf("gormstore: %T is no argument of type %s", args[p], typ)
			}
		}
		document = append(document, '}')
	}
	document[0] = '['
	return string(append(document, ']')), nil
}

// appendArgument writes one as a member's value. False: it is none of this type, or no value that PostgreSQL keeps.
func appendArgument(to []byte, typ string, value any) ([]byte, bool) {
	switch v := value.(type) {
	case nil:
		return append(to, "null"...), true
	case string:
		switch typ {
		case "text":
			return appendText(to, v)
		case "uuid":
			id, err := uuid.Parse(v)
			return append(append(append(to, '"'), id.String()...), '"'), err == nil
		case "jsonb":
			return append(to, v...), json.Valid([]byte(v))
		}
	case []byte:
		if v == nil {
			return append(to, "null"...), true
		}
		to = append(to, `"\\x`...)
		return append(hex.AppendEncode(to, v), '"'), typ == "bytea"
	case int:
		return strconv.AppendInt(to, int64(v), 10), typ == "integer" && v == int(int32(v)) || typ == "bigint" //nolint:gosec // compared
	case int64:
		return strconv.AppendInt(to, v, 10), typ == "bigint"
	case bool:
		return strconv.AppendBool(to, v), typ == "boolean"
	case time.Time:
		to = v.UTC().AppendFormat(append(to, '"'), "2006-01-02T15:04:05.999999Z07:00")
		return append(to, '"'), typ == "timestamptz"
	}
	return to, false
}

// appendText leaves what JSON's strings have as it is, and PostgreSQL's texts: all of Unicode but NUL.
func appendText(to []byte, s string) ([]byte, bool) {
	to = append(to, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"', c == '\\':
			to = append(to, '\\', c)
		case c < ' ':
			const digits = "0123456789abcdef"
			to = append(to, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
			if c == 0 {
				return to, false
			}
		default:
			to = append(to, c)
		}
	}
	return append(to, '"'), utf8.ValidString(s)
}
