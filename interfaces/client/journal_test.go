package client_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/interfaces/client"
)

var invoice = client.Posting{
	CompanyID: "company-uuid", SourceDocumentType: client.SalesInvoice, SourceDocumentID: "inv-2025-001", Version: 1,
	ServiceDate: "2025-01-29", Total: 110000,
	Lines: []client.EntryLine{
		{Account: "accounts_receivable", Side: client.Debit, Amount: 110000},
		{Account: "sales", Side: client.Credit, Amount: 100000},
		{Account: "consumption_tax", Side: client.Credit, Amount: 10000},
	},
}

// invoiceKey is the design's golden vector of the invoice.
const invoiceKey = "60ab152ef39206e9860001739db30aaff4076e3f65b509f7622b3fe96a2ccc23"

// accountant may post for the invoice's company.
var accountant = client.WithToken("demo-alice@company-uuid")

func TestADocumentIsBookedOnceAndFoundEverAfter(t *testing.T) {
	inBubble(func(t *testing.T) {
		c, _ := onWire(t, openShop(), accountant)
		booked := time.Now()
		first, err := c.PostJournalEntry(t.Context(), invoice)
		require.NoError(t, err)
		assert.False(t, first.Existed)
		assert.True(t, first.At.IsZero())
		assert.Equal(t, invoiceKey, first.PostingKey)
		assert.Equal(t, http.StatusCreated, first.Answer.Status)

		time.Sleep(time.Hour)
		strict := invoice
		strict.Strict = true
		for status, posting := range map[int]client.Posting{http.StatusOK: invoice, http.StatusConflict: strict} {
			again, err := c.PostJournalEntry(t.Context(), posting)
			require.NoError(t, err)
			assert.Equal(t, status, again.Answer.Status)
			assert.True(t, again.Existed)
			assert.Equal(t, first.JournalEntryID, again.JournalEntryID)
			assert.Equal(t, invoiceKey, again.PostingKey)
			assert.True(t, again.At.Equal(booked), "%s, not %s", again.At, booked)
			assert.True(t, again.Answer.Replayed())
			assert.Equal(t, 1, again.Answer.Tries)
		}

		entry, err := c.JournalEntry(t.Context(), first.JournalEntryID)
		require.NoError(t, err)
		assert.Equal(t, invoice.Lines, entry.Lines)
		assert.Equal(t, invoiceKey, entry.PostingKey)
		assert.Equal(t, "JPY", entry.Currency)
		assert.Equal(t, int64(110000), entry.Total)
		assert.Equal(t, "alice", entry.PostedBy)
		_, err = c.JournalEntry(t.Context(), "no such entry")
		assert.Equal(t, client.CodeNotFound, client.CodeOf(err))
	})(t)
}

func TestADocumentThatIsBookedOtherwiseIsAMismatchThatNamesTheEntry(t *testing.T) {
	inBubble(func(t *testing.T) {
		c, _ := onWire(t, openShop(), accountant)
		first, err := c.PostJournalEntry(t.Context(), invoice)
		require.NoError(t, err)
		other := invoice
		other.Currency = "USD"
		for _, other.Strict = range []bool{false, true} {
			_, err = c.PostJournalEntry(t.Context(), other)
			var mismatch *client.Mismatch
			require.ErrorAs(t, err, &mismatch)
			assert.Equal(t, first.JournalEntryID, mismatch.JournalEntryID)
			assert.Equal(t, invoiceKey, mismatch.PostingKey)
			assert.False(t, mismatch.At.IsZero())
			assert.Equal(t, client.CodeKeyReused, client.CodeOf(err))
			assert.Equal(t, client.NewKey, mismatch.Refusal.Retry)
			assert.Contains(t, err.Error(), first.JournalEntryID)
		}
		other.Version = 2
		corrected, err := c.PostJournalEntry(t.Context(), other)
		require.NoError(t, err)
		assert.False(t, corrected.Existed)
	})(t)
}

// C106: the retry is the first try's bytes, whatever becomes of the caller's document meanwhile.
func TestARetryOfAPostingHasTheVersionOfTheFirstTry(t *testing.T) {
	inBubble(func(t *testing.T) {
		document := invoice
		document.Lines = append([]client.EntryLine(nil), invoice.Lines...)
		meddling := client.WithObserver(func(client.Try) {
			document.Version++
			document.Lines[1].Amount++
		})
		c, w := onWire(t, openShop(), accountant, meddling)
		w.losing(2)
		posted, err := c.PostJournalEntry(t.Context(), document)
		require.NoError(t, err)
		assert.Equal(t, 3, posted.Answer.Tries)
		assert.Equal(t, http.StatusOK, posted.Answer.Status)
		assert.True(t, posted.Existed, "the first try has booked it")
		assert.Equal(t, invoiceKey, posted.PostingKey)

		entry, err := c.JournalEntry(t.Context(), posted.JournalEntryID)
		require.NoError(t, err)
		assert.Equal(t, int64(1), entry.Version)
		assert.Equal(t, invoice.Lines, entry.Lines)
	})(t)
}

func TestAPostingThatIsNotAnsweredIsUnknownAndPostedAgain(t *testing.T) {
	inBubble(func(t *testing.T) {
		c, w := onWire(t, openShop(), accountant, client.WithTries(2))
		unknown := unknownAfter(t, w, func() error {
			_, err := c.PostJournalEntry(t.Context(), invoice)
			return err
		})
		assert.Equal(t, client.OpPostJournalEntry, unknown.Operation)
		assert.Equal(t, client.Intent(invoiceKey), unknown.Key)
		assert.Contains(t, unknown.Error(), "post the same document again")
		posted, err := c.PostJournalEntry(t.Context(), invoice)
		require.NoError(t, err)
		assert.True(t, posted.Existed)
	})(t)
}

func TestWhatCannotBeBookedIsRefused(t *testing.T) {
	inBubble(func(t *testing.T) {
		c, _ := onWire(t, openShop(), accountant)
		nameless, unbalanced, foreign := invoice, invoice, invoice
		nameless.SourceDocumentID = ""
		unbalanced.Lines = unbalanced.Lines[:2]
		foreign.CompanyID = "another"
		for _, refused := range []struct {
			posting client.Posting
			code    client.Code
		}{
			{nameless, client.CodeInvalidRequest},
			{unbalanced, client.CodeInvalidRequest},
			{foreign, client.CodeForbidden},
		} {
			_, err := c.PostJournalEntry(t.Context(), refused.posting)
			assert.Equal(t, refused.code, client.CodeOf(err))
		}
	})(t)
}

func TestAPostingHasNoIdempotencyKeyHeader(t *testing.T) {
	inBubble(func(t *testing.T) {
		server := scripted(t, reply{Status: 503}, reply{
			Status: 201, Body: `{"journalEntryId":"e","idempotencyKey":"k","status":"created"}`,
		})
		_, err := served(t, server).PostJournalEntry(t.Context(), invoice)
		require.NoError(t, err)
		asked := server.seen()
		require.Len(t, asked, 2)
		assert.Equal(t, asked[0].body, asked[1].body)
		for _, r := range asked {
			assert.NotContains(t, r.header, "Idempotency-Key")
			assert.NotContains(t, r.header, "Prefer")
		}
	})(t)
}

func TestAProblemThatNamesNoEntryIsNoSuccess(t *testing.T) {
	inBubble(func(t *testing.T) {
		for _, body := range []string{
			`{"code":"duplicate_operation","retry":"never"}`,
			`{"code":"duplicate_operation","retry":"never","error":{"code":"DUPLICATE_OPERATION"}}`,
			`{"code":"duplicate_operation","retry":"never","error":"DUPLICATE_OPERATION"}`,
			`{"code":"duplicate_operation","retry":"never","error":{"code":"OTHER","details":{"originalJournalEntryId":"e"}}}`,
		} {
			c := served(t, scripted(t, reply{Status: 409, Body: body}))
			_, err := c.PostJournalEntry(t.Context(), invoice)
			assert.Equal(t, client.CodeDuplicateOperation, client.CodeOf(err), body)
		}
		for _, body := range []string{
			`{"journalEntryId":"e"}`,
			`{"idempotencyKey":"k"}`,
			`{"journalEntryId":"e","idempotencyKey":"k","isRetry":true}`,
			`{"journalEntryId":"e","idempotencyKey":"k","originalTimestamp":"yesterday","isRetry":true}`,
			`<html>`,
		} {
			c := served(t, scripted(t, reply{Status: 200, Body: body}))
			_, err := c.PostJournalEntry(t.Context(), invoice)
			var unknown *client.UnknownOutcome
			require.ErrorAs(t, err, &unknown, body)
		}
	})(t)
}
