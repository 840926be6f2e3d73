package main

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/infrastructure/gormstore/pgtest"
)

const pathPosting = "/api/journal-entries/post"

// as is one request under a token, which must be answered.
func (r *running) as(token, method, path, body string) answered {
	r.t.Helper()
	a, err := r.sendAs(token, method, path, "", body)
	require.NoError(r.t, err)
	return a
}

// member is a text in a JSON object.
func (a answered) member(t *testing.T, name string) string {
	t.Helper()
	found := regexp.MustCompile(`"` + name + `":"([^"]*)"`).FindStringSubmatch(a.body)
	require.NotNil(t, found, "%s in %s", name, a.body)
	return found[1]
}

// pay places an order and pays it.
func (r *running) pay(name string) (order string, receipt answered) {
	r.t.Helper()
	order = r.placed("place-" + name)
	receipt = r.post(order+"/confirm-payment", "pay-"+name, thousand)
	require.Equal(r.t, http.StatusOK, receipt.status, receipt.body)
	return order, receipt
}

// receivable is the document that a payment books, on its day in the zone.
func receivable(t *testing.T, company, zone string, receipt answered) string {
	t.Helper()
	place, err := time.LoadLocation(zone)
	require.NoError(t, err)
	at, err := time.Parse(time.RFC3339, receipt.member(t, "paidAt"))
	require.NoError(t, err)
	return fmt.Sprintf(`{"companyId":%q,"sourceDocumentType":"sales_invoice","sourceDocumentId":%q,"serviceDate":%q,`+
		`"total":1000}`, company, receipt.member(t, "orderId"), at.In(place).Format(time.DateOnly))
}

// onEachLastingStore runs the test on every kind of store that outlives the process.
func onEachLastingStore(t *testing.T, test func(t *testing.T, url string)) {
	t.Run("SQLite", func(t *testing.T) { test(t, sqliteFile(t)) })
	t.Run("PostgreSQL", func(t *testing.T) { test(t, pgtest.Empty(t)) })
}

func TestEntriesAndTheAuditLogOutliveTheService(t *testing.T) {
	onEachLastingStore(t, func(t *testing.T, url string) {
		env := map[string]string{"KAKUTEI_DATABASE_URL": url}
		before := serving(t, env)
		_, receipt := before.pay("1")
		invoice := receivable(t, "shop", "Asia/Tokyo", receipt)
		again := before.as("demo-bob@shop", http.MethodPost, pathPosting, invoice)
		require.Equal(t, http.StatusOK, again.status, again.body)
		path := "/api/journal-entries/" + again.member(t, "journalEntryId")
		entry := before.as("demo-bob@shop", http.MethodGet, path, "")
		require.Equal(t, http.StatusOK, entry.status, entry.body)
		before.stop()

		after := serving(t, env)
		assert.Equal(t, entry, after.as("demo-bob@shop", http.MethodGet, path, ""))
		assert.Equal(t, again, after.as("demo-bob@shop", http.MethodPost, pathPosting, invoice))
		audited := after.as("demo-operator", http.MethodGet, "/api/audit?kind=duplicate&limit=1", "")
		require.Equal(t, http.StatusOK, audited.status, audited.body)
		assert.Equal(t, again.member(t, "idempotencyKey"), audited.member(t, "idempotencyKey"))
		assert.Contains(t, audited.member(t, "detail"), "bob")
		after.stop()
	})
}

// What happens in the last moment is in the log, although nobody waited for it.
func TestWhatIsAuditedBeforeTheEndIsNotLost(t *testing.T) {
	onEachLastingStore(t, func(t *testing.T, url string) {
		env := map[string]string{"KAKUTEI_DATABASE_URL": url}
		r := serving(t, env)
		order, _ := r.pay("1")
		for range 20 {
			reused := r.post(order+"/confirm-payment", "pay-1", `{"amount":1,"currency":"JPY"}`)
			require.Equal(t, http.StatusUnprocessableEntity, reused.status, reused.body)
		}
		r.stop()
		audited := serving(t, env).as("demo-operator", http.MethodGet, "/api/audit?kind=mismatch", "")
		assert.Equal(t, 20, strings.Count(audited.body, `"idempotencyKey":"pay-1"`), audited.body)
	})
}

// These two zones never have the same day.
func TestAPaymentEntersTheCompanysBooksOnTheShopsDay(t *testing.T) {
	for zone, elsewhere := range map[string]string{
		"Pacific/Kiritimati": "Pacific/Pago_Pago", "Pacific/Pago_Pago": "Pacific/Kiritimati",
	} {
		t.Run(zone, func(t *testing.T) {
			r := serving(t, map[string]string{
				"KAKUTEI_DATABASE_URL": "memory:", "KAKUTEI_COMPANY_ID": "tea-house", "KAKUTEI_TIME_ZONE": zone,
			})
			_, receipt := r.pay("1")
			status := func(company, zone string) int {
				return r.as("demo-bob@"+company, http.MethodPost, pathPosting, receivable(t, company, zone, receipt)).status
			}
			assert.Equal(t, http.StatusOK, status("tea-house", zone), "it is booked")
			assert.Equal(t, http.StatusCreated, status("tea-house", elsewhere), "it was not")
			assert.Equal(t, http.StatusCreated, status("shop", zone), "it was not")
		})
	}
}

func TestTheServiceSweepsOldAuditEntriesAndNoEntryOfTheBooks(t *testing.T) {
	r := serving(t, map[string]string{
		"KAKUTEI_DATABASE_URL": sqliteFile(t), "KAKUTEI_AUDIT_RETENTION": "1ms", "KAKUTEI_SWEEP_INTERVAL": "20ms",
	})
	const invoice = `{"companyId":"c","sourceDocumentType":"adjustment","sourceDocumentId":"d",` +
		`"serviceDate":"2025-01-29","total":1}`
	first := r.as("demo-alice@c", http.MethodPost, pathPosting, invoice)
	require.Equal(t, http.StatusCreated, first.status, first.body)
	require.Equal(t, http.StatusOK, r.as("demo-alice@c", http.MethodPost, pathPosting, invoice).status)
	r.stderr.await(t, `"msg":"swept expired records","deleted":1`)
	audited := r.as("demo-operator", http.MethodGet, "/api/audit", "")
	assert.Contains(t, audited.body, `{"entries":[],"next":null}`)
	again := r.as("demo-alice@c", http.MethodPost, pathPosting, invoice)
	assert.Equal(t, first.member(t, "journalEntryId"), again.member(t, "journalEntryId"))
	r.stop()
}
