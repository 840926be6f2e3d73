package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// together sends the requests at once, turn by turn to the edges. Each must be answered.
func together(t *testing.T, requests []request, edges ...edge) []answer {
	t.Helper()
	answers := make([]answer, len(requests))
	start := make(chan struct{})
	var all sync.WaitGroup
	for i, r := range requests {
		all.Go(func() {
			<-start
			a, err := edges[i%len(edges)].try(context.WithoutCancel(t.Context()), r)
			assert.NoError(t, err)
			answers[i] = a
		})
	}
	close(start)
	all.Wait()
	return answers
}

func identicalPostings(t *testing.T, e edge) { postIdentically(t, e) }

// postIdentically posts a document a hundred times at once: who loses the race is no worse off than who comes later
// (C16).
func postIdentically(t *testing.T, edges ...edge) {
	t.Helper()
	requests := make([]request, 100)
	for i := range requests {
		requests[i] = taxed("inv-1").posted()
	}
	booked := 0
	id := any(nil)
	answers := together(t, requests, edges...)
	for _, a := range answers {
		if a.status == http.StatusCreated {
			booked++
			id = a.is(t, http.StatusCreated).member(t, "journalEntryId")
		}
	}
	require.Equal(t, 1, booked)
	for _, a := range answers {
		assert.Equal(t, id, a.member(t, "journalEntryId"), a.body)
		if a.status != http.StatusCreated {
			assert.Equal(t, true, a.is(t, http.StatusOK).member(t, "isRetry"))
			assert.Equal(t, "true", a.header.Get("Idempotent-Replayed"))
		}
	}
}

func postingsOfTenDocuments(t *testing.T, e edge) {
	const documents = 10
	requests := make([]request, 100)
	for i := range requests {
		requests[i] = taxed(fmt.Sprint("inv-", i%documents)).posted()
	}
	ids, booked := map[any]any{}, 0
	for _, a := range together(t, requests, e) {
		require.Contains(t, []int{http.StatusCreated, http.StatusOK}, a.status, a.body)
		if a.status == http.StatusCreated {
			booked++
		}
		key, id := a.member(t, "idempotencyKey"), a.member(t, "journalEntryId")
		if known, seen := ids[key]; seen {
			assert.Equal(t, known, id)
		}
		ids[key] = id
	}
	assert.Len(t, ids, documents)
	assert.Equal(t, documents, booked)
}
