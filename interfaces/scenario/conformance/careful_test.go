package conformance_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
)

// careful is a server that keeps to the draft and to the extensions, but for one flaw.
type careful struct {
	flaw string
	makes
	records sync.Map // *kept by caller and key
}

// kept is what a careful server remembers of a key.
type kept struct {
	body string
	done chan struct{} // closed when there is an answer

	mu      sync.Mutex
	answer  string
	replays int
}

func (c *careful) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	sent := r.Header.Values("Idempotency-Key")
	key, valid := c.key(sent)
	switch {
	case len(sent) == 0 && c.flaw == "missing-key":
		c.problem(w, http.StatusUnprocessableEntity, true)
		return
	case !valid:
		c.problem(w, http.StatusBadRequest, c.flaw != "missing-key-link")
		return
	}
	body, _ := io.ReadAll(r.Body)
	scope := r.Header.Get("Authorization") + " " + key
	if c.flaw == "isolation" {
		scope = key
	}
	mine := &kept{body: string(body), done: make(chan struct{})}
	found, known := c.records.LoadOrStore(scope, mine)
	if !known {
		text := c.thing(mine.body)
		if c.flaw == "first-request" {
			text = `{"thing":"always the same"}`
		}
		mine.answer = text
		close(mine.done)
		c.answer(w, text)
		return
	}
	c.again(w, scope, found.(*kept), mine.body)
}

// again answers a request whose key is known.
func (c *careful) again(w http.ResponseWriter, scope string, k *kept, body string) {
	if k.body != body && c.flaw != "reuse" {
		if c.flaw == "reuse-keeps" {
			c.records.Delete(scope)
		}
		status := http.StatusUnprocessableEntity
		if c.flaw == "reuse-status" {
			status = http.StatusConflict
		}
		c.problem(w, status, c.flaw != "reuse-link")
		return
	}
	select {
	case <-k.done:
	default:
		if c.flaw == "concurrent-conflict" {
			<-k.done
			break
		}
		if c.flaw != "concurrent-retry-after" {
			w.Header().Set("Retry-After", "1")
		}
		status := http.StatusConflict
		if c.flaw == "concurrent-status" {
			status = http.StatusLocked
		}
		c.problem(w, status, true)
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.replays++; c.flaw == "replay-of-a-later-retry" && k.replays > 1 {
		k.answer = c.thing(body)
	}
	if c.flaw == "replay" {
		k.answer = c.thing(body)
	}
	if c.flaw != "replay-mark" {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	c.answer(w, k.answer)
}

func (c *careful) answer(w http.ResponseWriter, text string) {
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, text)
}

// key reads the header, with or without quotation marks.
func (c *careful) key(sent []string) (string, bool) {
	if len(sent) == 0 || len(sent) > 1 && c.flaw != "two-keys" {
		return "", false
	}
	text := sent[0]
	if c.flaw == "malformed-key" && text != `""` {
		return strings.Trim(text, `"`), true
	}
	inner, opened := strings.CutPrefix(text, `"`)
	inner, closed := strings.CutSuffix(inner, `"`)
	switch {
	case opened != closed, strings.ContainsAny(inner, `" ()`):
		return "", false
	case inner == "":
		return inner, opened && c.flaw == "empty-key"
	case opened:
		return inner, c.flaw != "quoted-key"
	default:
		return inner, c.flaw != "bare-key"
	}
}

func (c *careful) problem(w http.ResponseWriter, status int, linked bool) {
	kind, reference := "application/problem+json", `"type":"/problems/idempotency",`
	if c.flaw == "problem-documents" {
		kind = "application/json"
	}
	if !linked {
		reference = ""
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	fmt.Fprintf(w, `{%s"title":"no","status":%d}`, reference, status)
}

func TestAServerWithOneFlawFailsTheChecksOfThatFlawAlone(t *testing.T) {
	// What a flaw fails beside the check of its name.
	more := map[string][]string{
		"":                    nil,
		"first-request":       {"isolation"}, // one answer for all is one for another caller, too
		"replay":              {"replay-of-a-later-retry", "burst", "reuse-keeps", "bare-key"},
		"concurrent-conflict": {"concurrent-status", "concurrent-retry-after"},
		"reuse":               {"reuse-status", "reuse-link", "problem-documents"},
	}
	for _, flaw := range []string{
		"", "quoted-key", "malformed-key", "two-keys", "empty-key", "bare-key", "first-request", "replay",
		"replay-of-a-later-retry", "replay-mark", "concurrent-conflict", "concurrent-status", "concurrent-retry-after",
		"missing-key", "missing-key-link", "reuse", "reuse-status", "reuse-link", "reuse-keeps", "isolation",
		"problem-documents",
	} {
		t.Run(flaw, func(t *testing.T) {
			t.Parallel()
			failed, lacking := failing(t, &careful{flaw: flaw}, description)
			want := more[flaw]
			if flaw != "" {
				want = append([]string{flaw}, want...)
			}
			got := append(failed, lacking...)
			if strings.HasPrefix(flaw, "replay") { // whether duplicates at once come to a replay is up to their order
				want, got = without(want, "burst"), without(got, "burst")
			}
			assert.ElementsMatch(t, want, got)
		})
	}
}

func without(all []string, one string) (left []string) {
	for _, each := range all {
		if each != one {
			left = append(left, each)
		}
	}
	return left
}
