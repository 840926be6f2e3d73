package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/interfaces/client"
)

// pay is the README's example, line by line.
func pay(ctx context.Context, shop *client.Client, order client.Order) {
	intent := client.NewIntent() // keep it beside the order: a retry, also after a crash, needs the same one
	paid, err := shop.ConfirmPayment(ctx, intent, order.OrderID, client.Payment{Amount: 1000, Currency: "JPY"})
	var unknown *client.UnknownOutcome
	switch {
	case err == nil:
		fmt.Println("paid:", paid.Amount, paid.Currency)
	case errors.As(err, &unknown): // neither paid nor refused, as far as anybody knows here
		fmt.Println("ask for it, or confirm once more, under the same key:", unknown.Key)
	default: // refused, or never sent: only the advice new-key allows another intent
		fmt.Println("not paid:", client.CodeOf(err), err)
	}
}

func Example() {
	service := httptest.NewServer(openShop().handler) // or a running one: "http://127.0.0.1:8080"
	defer service.Close()
	ctx := context.Background()

	shop, err := client.New(service.URL, client.WithToken("demo-alice"))
	if err != nil {
		panic(err)
	}
	order, err := shop.PlaceOrder(ctx, client.NewIntent(), client.NewOrder{
		Currency: "JPY", Lines: []client.Line{{SKU: "tea", Name: "煎茶", Quantity: 2, UnitPrice: 500}},
	})
	if err != nil {
		panic(err)
	}
	pay(ctx, shop, order)
	// Output: paid: 1000 JPY
}

func TestTheReadmesExampleIsTheOneThatIsCompiled(t *testing.T) {
	readme, source := text(t, "README.md"), text(t, "example_test.go")
	_, example, found := strings.Cut(readme, "```go\n")
	require.True(t, found)
	example, _, found = strings.Cut(example, "```")
	require.True(t, found)
	for line := range strings.Lines(example) {
		assert.Contains(t, source, "\t"+strings.TrimSpace(line)+"\n")
	}
	assert.Greater(t, strings.Count(example, "\n"), 9)
	assert.LessOrEqual(t, strings.Count(example, "\n"), 14)
}

// The README's table has a row for each code that the service answers, with its advice.
func TestTheReadmesTableIsThePublishedOne(t *testing.T) {
	rows := map[string]string{}
	for line := range strings.Lines(text(t, "README.md")) {
		cells := strings.Split(line, " | ")
		if len(cells) != 4 || !strings.HasPrefix(cells[0], "| `") {
			continue
		}
		for code := range strings.SplitSeq(strings.Trim(cells[0], "| "), ", ") {
			rows[strings.Trim(code, "`")] = strings.Join(cells[1:3], " ")
		}
	}
	all := published(t).Problems
	assert.Len(t, rows, len(all))
	for _, p := range all {
		decision := map[string]string{"again": "sent again", "refused": "`*Error`"}[p.Decision]
		assert.Equal(t, string(p.Retry)+" "+decision, rows[string(p.Code)], p.Code)
	}
}

func text(t *testing.T, path string) string {
	t.Helper()
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(file)
}
