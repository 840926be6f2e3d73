package httpapi_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/domain/journal"
)

const (
	pathPost    = "/api/journal-entries/post"
	pathEntries = "/api/journal-entries/"
	pathAudit   = "/api/audit"

	// company is whose books the tests post to.
	company = "company-uuid"
	// accountant may post to them.
	accountant = "demo-alice@" + company
)

// document is the body of a posting, by its members. A value of type json.RawMessage is sent as it stands.
type document map[string]any

// invoice is a sales invoice over 110000 yen, without lines of its own.
func invoice(id string) document {
	return document{
		"companyId": company, "sourceDocumentType": "sales_invoice", "sourceDocumentId": id, "version": 1,
		"serviceDate": "2025-01-29", "total": 110_000,
	}
}

// taxed is the invoice with the tax in a line of its own.
func taxed(id string) document {
	return invoice(id).with("lines", []any{
		line("accounts_receivable", "debit", 110_000), line("sales", "credit", 100_000),
		line("consumption_tax", "credit", 10_000),
	})
}

func line(account, side string, amount int64) document {
	return document{"account": account, "side": side, "amount": amount}
}

func (d document) with(name string, value any) document {
	d = maps.Clone(d)
	d[name] = value
	return d
}

func (d document) without(name string) document {
	d = maps.Clone(d)
	delete(d, name)
	return d
}

// body is the document as JSON, its members in alphabetical order.
func (d document) body() string {
	text, err := json.Marshal(d)
	if err != nil {
		panic(err) // a mistake in the test
	}
	return string(text)
}

// posted is the request that posts the document, by somebody who may.
func (d document) posted() request {
	token := "demo-alice"
	if company, isText := d["companyId"].(string); isText {
		token += "@" + company
	}
	return post(pathPost, d.body()).token(token).key("")
}

// booking is the document's 201.
func (e edge) booking(t *testing.T, d document) answer {
	t.Helper()
	a := e.send(t, d.posted()).is(t, http.StatusCreated)
	assert.Empty(t, a.header.Get("Idempotent-Replayed"))
	return a
}

// repeating is the 200 of a document that is booked already.
func (e edge) repeating(t *testing.T, d document) answer {
	t.Helper()
	a := e.send(t, d.posted()).is(t, http.StatusOK)
	require.Equal(t, "true", a.header.Get("Idempotent-Replayed"))
	require.Equal(t, true, a.member(t, "isRetry"))
	return a
}

// entry is the entry with this id, as its company reads it.
func (e edge) entry(t *testing.T, id any, token string) answer {
	t.Helper()
	text, isText := id.(string)
	require.True(t, isText)
	return e.send(t, get(pathEntries+text).token(token)).is(t, http.StatusOK)
}

// linesOf are the lines that stand in an entry.
func linesOf(t *testing.T, entry answer) (lines []journal.Line) {
	t.Helper()
	var read struct {
		Lines []struct {
			Account string
			Side    journal.Side
			Amount  int64
		}
	}
	require.NoError(t, json.Unmarshal([]byte(entry.body), &read))
	for _, l := range read.Lines {
		lines = append(lines, journal.Line(l))
	}
	return lines
}
