package client_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/interfaces/client"
)

func TestABaseURLIsAServicesAddress(t *testing.T) {
	for _, url := range []string{
		"", "localhost:8080", "ftp://localhost", "http://", "http:///path", "http://alice:secret@localhost",
		"http://localhost?a=b", "http://localhost#a", "http://local host", ":",
	} {
		_, err := client.New(url)
		require.Error(t, err, url)
		assert.NotContains(t, err.Error(), "secret")
	}
}

func TestAPathOfTheBaseURLIsKept(t *testing.T) {
	inBubble(func(t *testing.T) {
		for _, prefix := range []string{"", "/", "/shop", "/shop/"} {
			server := scripted(t, reply{Status: http.StatusOK, Body: strings.Replace(receipt, "o-1", "o/1", 1)})
			p := newPipes()
			serve(t, &http.Server{Handler: server}, p)
			transport := &http.Transport{DialContext: p.dial}
			t.Cleanup(transport.CloseIdleConnections)
			c := newClient(t, "http://localhost"+prefix, client.WithHTTPClient(&http.Client{Transport: transport}))
			_, err := c.ConfirmPayment(t.Context(), "k", "o/1", payment)
			require.NoError(t, err)
			want := "/api/orders/o%2F1/confirm-payment"
			if len(prefix) > 1 {
				want = "/shop" + want
			}
			assert.Equal(t, want, server.seen()[0].target)
		}
	})(t)
}

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	for name, option := range map[string]client.Option{
		"no try":                  client.WithTries(0),
		"no total time":           client.WithTotalTime(0),
		"a negative try timeout":  client.WithTryTimeout(-time.Second),
		"no backoff":              client.WithBackoff(0, time.Second),
		"a backoff that shrinks":  client.WithBackoff(2*time.Second, time.Second),
		"no longest Retry-After":  client.WithMaxRetryAfter(0),
		"no http.Client":          client.WithHTTPClient(nil),
		"no observer":             client.WithObserver(nil),
		"an option that gives up": func(*client.Client) error { return errors.New("no") },
	} {
		_, err := client.New("http://localhost", option)
		require.Error(t, err, name)
		_, err = newClient(t, "http://localhost").With(option)
		require.Error(t, err, name)
	}
}

func TestAClientOfAnotherCallerLeavesTheFirstAsItWas(t *testing.T) {
	inBubble(func(t *testing.T) {
		server := scripted(t, reply{Status: 503}, reply{Receipt: true})
		alice := served(t, server)
		bob := alice.As("demo-bob")
		once, err := bob.With(client.WithTries(1))
		require.NoError(t, err)
		require.Error(t, confirm(t.Context(), once))
		require.NoError(t, confirm(t.Context(), alice))
		assert.Equal(t, "Bearer demo-bob", server.seen()[0].header.Get("Authorization"))
		assert.Equal(t, "Bearer demo-alice", server.seen()[1].header.Get("Authorization"))
	})(t)
}

// C33, C35, C37: the texts that are keys are the published ones.
func TestThePublishedKeys(t *testing.T) {
	var vectors []struct {
		Text client.Intent `json:"text"`
		Key  bool          `json:"key"`
	}
	readJSON(t, "../../docs/idempotency-keys.json", &vectors)
	require.Greater(t, len(vectors), 30)
	inBubble(func(t *testing.T) {
		c, _ := onWire(t, openShop())
		for _, v := range vectors {
			if !v.Key {
				require.ErrorIs(t, v.Text.Check(), client.ErrNotAnIntent, "%q", v.Text)
				continue
			}
			require.NoError(t, v.Text.Check(), "%q", v.Text)
			placed, err := c.PlaceOrder(t.Context(), v.Text, tea)
			require.NoError(t, err)
			assert.Equal(t, string(v.Text), placed.Answer.Header.Get("Idempotency-Key"))
			o, err := c.Outcome(t.Context(), client.OpPlaceOrder, v.Text)
			require.NoError(t, err, "%q", v.Text)
			assert.Equal(t, v.Text, o.Key)
		}
	})(t)
}

func TestANewIntentIsANewKeyEachTime(t *testing.T) {
	made := map[client.Intent]bool{}
	for range 100 {
		intent := client.NewIntent()
		require.NoError(t, intent.Check())
		made[intent] = true
	}
	assert.Len(t, made, 100)
}
