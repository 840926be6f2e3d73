package client_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"kakutei/interfaces/client"
)

// decisions is docs/retry-decisions.json, which the service and the clients in all languages test against.
type decisions struct {
	Problems []struct {
		Code     client.Code   `json:"code"`
		Status   int           `json:"status"`
		Retry    client.Advice `json:"retry"`
		Decision string        `json:"decision"`
	} `json:"problems"`
	Answers []struct {
		Name     string            `json:"name"`
		Status   int               `json:"status"`
		Headers  map[string]string `json:"headers"`
		Body     string            `json:"body"`
		Decision string            `json:"decision"`
	} `json:"answers"`
	Waits []struct {
		RetryAfter string `json:"retryAfter"`
		Date       string `json:"date"`
		Seconds    int    `json:"seconds"`
	} `json:"waits"`
	Scripts []script `json:"scripts"`
}

// script is how a server behaves and what a client makes of it. The last answer is given for ever.
type script struct {
	Name       string  `json:"name"`
	Tries      int     `json:"tries"`
	Answers    []reply `json:"answers"`
	Requests   int     `json:"requests"`
	Decision   string  `json:"decision"`
	MinSeconds int     `json:"minSeconds"`
}

// reply is one answer of a script: a receipt, a problem, something else with a status, or none that arrives.
type reply struct {
	Receipt        bool              `json:"receipt"`
	Problem        client.Code       `json:"problem"`
	Status         int               `json:"status"`
	Body           string            `json:"body"`
	Headers        map[string]string `json:"headers"`
	RetryAfterDate int               `json:"retryAfterDate"` // seconds from now, sent as a date
	Lost           string            `json:"lost"`           // "reset", "timeout", "cut", "cut refusal"
}

func published(t *testing.T) (d decisions) {
	t.Helper()
	readJSON(t, "../../docs/retry-decisions.json", &d)
	require.NotEmpty(t, d.Problems)
	require.NotEmpty(t, d.Answers)
	require.NotEmpty(t, d.Waits)
	require.NotEmpty(t, d.Scripts)
	return d
}

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(file, into))
}
