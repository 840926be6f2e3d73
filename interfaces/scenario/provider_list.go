package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// ProviderList asks a payment provider that speaks the gateway protocol (docs/contract.md) what it has taken.
type ProviderList struct {
	BaseURL string
	Token   string // empty: none is sent
}

// Charges counts how often an order's money was taken.
func (l ProviderList) Charges(ctx context.Context, orderID string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		strings.TrimRight(l.BaseURL, "/")+"/charges?orderId="+url.QueryEscape(orderID), http.NoBody)
	if err != nil {
		return 0, err
	}
	if l.Token != "" {
		request.Header.Set("Authorization", "Bearer "+l.Token)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("it is answered %d", answer.StatusCode)
	}
	var list struct {
		Charges []struct {
			Status string `json:"status"`
		} `json:"charges"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&list); err != nil {
		return 0, err
	}
	n := 0
	for _, charge := range list.Charges {
		if charge.Status == "approved" {
			n++
		}
	}
	return n, nil
}
