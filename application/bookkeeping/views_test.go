package bookkeeping_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/bookkeeping"
)

// The documents are the contract's, member by member and in its order.

func TestAPostingIsAnsweredAsPublished(t *testing.T) {
	onBothStores(t, func(t *testing.T, o office) {
		first := o.posted(t, invoice(t, "inv-2025-001"))
		o.Clock.Pass(time.Hour)
		assert.Equal(t, withID(first, `{"journalEntryId":"ID",`+
			`"idempotencyKey":"60ab152ef39206e9860001739db30aaff4076e3f65b509f7622b3fe96a2ccc23","status":"created"}`),
			written(t, first.View()))
		assert.Equal(t, withID(first, `{"message":"Operation already processed","journalEntryId":"ID",`+
			`"idempotencyKey":"60ab152ef39206e9860001739db30aaff4076e3f65b509f7622b3fe96a2ccc23",`+
			`"originalTimestamp":"2026-11-30T01:02:03.123456Z","isRetry":true}`),
			written(t, o.posted(t, invoice(t, "inv-2025-001")).View()))
	})
}

func TestAnEntryIsReadAsPublished(t *testing.T) {
	onBothStores(t, func(t *testing.T, o office) {
		first := o.posted(t, invoice(t, "inv-2025-001"))
		found, err := o.Entry(t.Context(), string(first.Entry.ID), []string{company})
		require.NoError(t, err)
		assert.Equal(t, withID(first, `{"journalEntryId":"ID",`+
			`"idempotencyKey":"60ab152ef39206e9860001739db30aaff4076e3f65b509f7622b3fe96a2ccc23",`+
			`"companyId":"company-uuid","sourceDocumentType":"sales_invoice","sourceDocumentId":"inv-2025-001",`+
			`"version":1,"serviceDate":"2025-01-29","total":110000,"currency":"JPY","lines":[`+
			`{"account":"accounts_receivable","side":"debit","amount":110000},`+
			`{"account":"sales","side":"credit","amount":100000},`+
			`{"account":"consumption_tax","side":"credit","amount":10000}],`+
			`"postedAt":"2026-11-30T01:02:03.123456Z","postedBy":"alice"}`),
			written(t, found))
	})
}

// withID puts the entry's id, which no test can know before, into a document.
func withID(p bookkeeping.Posted, document string) string {
	return strings.ReplaceAll(document, `"ID"`, `"`+string(p.Entry.ID)+`"`)
}

func written(t *testing.T, view any) string {
	t.Helper()
	document, err := json.Marshal(view)
	require.NoError(t, err)
	return string(document)
}
