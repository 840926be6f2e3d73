package main

import (
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/infrastructure/gormstore/pgtest"
)

// endOfText is what would end a text in SQL and begin a statement, if it ever became part of one.
const endOfText = `planted'); DROP TABLE orders; -- $1 @id ? %s`

// plant sends it wherever a client, a customer's name or an operator may say what they like, and demands that each comes
// back as it was sent.
func plant(t *testing.T, r *running) {
	t.Helper()
	const name, key = "planted'--", "planted'$1?--"
	as := func(method, path, key, body string, want int) string {
		t.Helper()
		token := "demo-" + name + "@" + name
		if strings.HasPrefix(path, "/api/unresolved") {
			token = "demo-operator"
		}
		a, err := r.sendAs(token, method, path, key, body)
		require.NoError(t, err)
		require.Equal(t, want, a.status, a.body)
		return a.body
	}
	place := func(key string) string {
		body := as(http.MethodPost, "/api/orders", key,
			`{"currency":"JPY","lines":[{"sku":"`+endOfText+`","name":"`+endOfText+`","quantity":1,"unitPrice":1000}]}`, http.StatusCreated)
		assert.Equal(t, 2, strings.Count(body, endOfText))
		return orderIn(body)
	}
	order := place(key + "1")
	assert.Equal(t, 2, strings.Count(as(http.MethodGet, order, "", "", http.StatusOK), endOfText))
	assert.Contains(t, as(http.MethodPost, order+"/cancel", key, `{"reason":"`+endOfText+`"}`, http.StatusOK), endOfText)
	as(http.MethodPost, place(key+"2")+"/confirm-payment", key+"2", paidBy(endOfText), http.StatusPaymentRequired)
	as(http.MethodPost, place(key+"3")+"/confirm-payment", key+"3", paidBy("pm_down"), http.StatusServiceUnavailable)
	as(http.MethodPost, "/api/unresolved/resolve", "", `{"operation":"ConfirmPayment","actor":"`+name+`","idempotencyKey":"`+key+`3",`+
		`"outcome":"charged","chargeId":"endOfText'--","note":"`+endOfText+`"}`, http.StatusOK)
	assert.Contains(t, as(http.MethodGet, "/api/idempotency-keys/"+url.PathEscape(key+"2")+"?operation=ConfirmPayment", "", "",
		http.StatusOK), "unknown_payment_method")
	posted := as(http.MethodPost, "/api/journal-entries/post", "", strings.Replace(strings.Replace(document,
		"company-1", name, 1), "inv-1", endOfText, 1), http.StatusCreated)
	id := regexp.MustCompile(`"journalEntryId":"([^"]+)"`).FindStringSubmatch(posted)[1]
	assert.Contains(t, as(http.MethodGet, "/api/journal-entries/"+id, "", "", http.StatusOK), endOfText)
	as(http.MethodGet, "/api/orders/"+url.PathEscape(endOfText), "", "", http.StatusNotFound)
	as(http.MethodGet, "/api/journal-entries/"+url.PathEscape(endOfText), "", "", http.StatusNotFound)
	require.Eventually(t, func() bool {
		a, err := r.sendAs("demo-operator", http.MethodGet, "/api/audit?kind=resolved", "", "")
		return err == nil && strings.Contains(a.body, endOfText)
	}, soon, time.Millisecond)
}

func TestWhateverIsSentComesBackAsItWasSent(t *testing.T) {
	onEachStore(t, func(t *testing.T, url string) {
		r := serving(t, map[string]string{"KAKUTEI_DATABASE_URL": url, "KAKUTEI_RECOVERY_INTERVAL": "0"})
		plant(t, r)
		r.stop()
	})
}

// SQL goes to the server in one piece and what clients say in another: the server's own log tells them apart.
func TestNothingThatIsSentIsPartOfAStatement(t *testing.T) {
	g := groundOn(t, pgtest.Empty(t))
	require.NotEmpty(t, g.log, "KAKUTEI_TEST_POSTGRES_LOG: this test reads the server's log")
	var database string
	require.NoError(t, g.rows.QueryRowContext(t.Context(), `SELECT current_database()`).Scan(&database))
	g.exec(`ALTER DATABASE ` + database + ` SET log_statement = 'all'`)
	r := serving(t, map[string]string{
		"KAKUTEI_DATABASE_URL": g.env["KAKUTEI_DATABASE_URL"], "KAKUTEI_RECOVERY_INTERVAL": "0",
	})
	plant(t, r)
	r.stop()

	log, err := os.ReadFile(g.log)
	require.NoError(t, err)
	statements, arguments := 0, 0
	for _, entry := range regexp.MustCompile(`(?m)^\d{4}-\d\d-\d\d `).Split(string(log), -1) {
		if !strings.Contains(entry, " "+database+" ") {
			continue
		}
		if _, text, isStatement := strings.Cut(entry, "LOG:  "); isStatement {
			statements++
			assert.NotContains(t, text, "planted")
		} else if strings.Contains(entry, "planted") {
			arguments++
		}
	}
	assert.Greater(t, statements, 50)
	assert.Greater(t, arguments, 20, "what was sent went beside the statements")
}
