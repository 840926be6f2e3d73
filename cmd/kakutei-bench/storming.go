package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"kakutei/interfaces/client"
)

// storms is what the part "storms" has found out. The first of each is what is undisturbed.
type storms struct {
	kinds []string
	of    map[string][]storm // by round
}

// storm is how it went while storms came.
type storm struct {
	first      []time.Duration // of each storm: until the payment was answered
	answers    map[string]int  // of the others
	duplicates []time.Duration
	bystanders sample
	refused    int // requests of theirs that found no place, and were sent again
}

const (
	bystanders = 8                      // clients who pay orders of their own
	rush       = 32                     // clients with one key
	lull       = 100 * time.Millisecond // from one storm's beginning to the next one's

	alone      = "one client instead of a storm, every 100 ms"
	strangers  = "one client, and 31 requests that are refused as they are read, every 100 ms"
	everyLull  = "a storm every 100 ms"
	backToBack = "storm upon storm, without a pause"
)

// storms measures what many requests with one key at the same moment do to others.
func (b *bench) storms(ctx context.Context) (all storms, err error) {
	s, err := b.branch(ctx, "storms")
	if err != nil {
		return all, err
	}
	all = storms{kinds: []string{alone, strangers, everyLull, backToBack}, of: map[string][]storm{}}
	for round := range b.rounds {
		for i := range all.kinds {
			kind := all.kinds[(i+round)%len(all.kinds)]
			of, err := b.storm(ctx, s, kind)
			if err != nil {
				return all, fmt.Errorf("%s, round %d: %w", kind, round+1, err)
			}
			all.of[kind] = append(all.of[kind], of)
		}
		b.tell("round %d of %d measured", round+1, b.rounds)
	}
	return all, s.close(ctx)
}

func (b *bench) storm(ctx context.Context, s *branch, kind string) (of storm, err error) {
	orders, err := s.stock(ctx, b.seconds)
	if err != nil {
		return of, err
	}
	clients, pause, others := rush, lull, payment
	switch kind {
	case alone:
		clients = 1
	case strangers:
		others = `{"amount":0,"currency":"JPY"}`
	case backToBack:
		pause = 0
	}
	of.answers = map[string]int{}
	over, stormed := make(chan struct{}), make(chan error, 1)
	err = settled(ctx, s.database, func() (int, error) {
		go func() { stormed <- of.rage(ctx, s.service, orders, clients, others, pause, over) }()
		measured, r, err := b.measure(ctx, meters{
			services: []*instance{s.service}, database: s.database, crowded: true,
		}, func() (ran, error) {
			r, err := load(bystanders, b.seconds, func() error { return orders.confirm(ctx, s.service.shop) })
			close(over)
			return r, errors.Join(err, <-stormed)
		})
		of.bystanders, of.refused = measured, s.service.retries()
		return r.count + len(of.first), err
	})
	return of, err
}

// rage has so many clients pay one order under one key at the same moment, and again another one. The body is that of all
// but one.
func (of *storm) rage(
	ctx context.Context, i *instance, orders *stock, clients int, others string, pause time.Duration, over <-chan struct{},
) error {
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	defer transport.CloseIdleConnections()
	for {
		begun := time.Now()
		p, err := orders.take()
		if err != nil {
			return err
		}
		if err := of.strike(ctx, transport, i.base, p, clients, others); err != nil {
			return err
		}
		select {
		case <-over:
			return nil
		case <-time.After(pause - time.Since(begun)):
		}
	}
}

// strike is one storm. One of its requests pays; what the others are told is counted.
func (of *storm) strike(
	ctx context.Context, over http.RoundTripper, base string, p purchase, clients int, others string,
) error {
	var all sync.WaitGroup
	gate, told, errs := make(chan struct{}), make([]string, clients), make([]error, clients)
	times := make([]time.Duration, clients)
	for i := range clients {
		all.Go(func() {
			body := others
			if i == clients/2 {
				body = payment
			}
			<-gate
			begun := time.Now()
			told[i], errs[i] = raw(ctx, over, base, p, body)
			times[i] = time.Since(begun)
		})
	}
	close(gate)
	all.Wait()
	paid := 0
	for i, answer := range told {
		if answer == strconv.Itoa(http.StatusOK) {
			paid++
			of.first = append(of.first, times[i])
			continue
		}
		of.answers[answer]++
		of.duplicates = append(of.duplicates, times[i])
	}
	if err := errors.Join(errs...); err != nil || paid <= 1 { // none, when there was no place for the first one
		return err
	}
	return fmt.Errorf("one order was paid %d times: %v", paid, told)
}

// payment is a confirmation's body.
const payment = `{"amount":1000,"currency":"JPY"}`

// raw sends a confirmation once. The answer is its status, its code if it is a problem, and whether it is a replay.
func raw(ctx context.Context, over http.RoundTripper, base string, p purchase, sent string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/api/orders/"+p.order+"/confirm-payment",
		strings.NewReader(sent))
	if err != nil {
		return "", err
	}
	r.GetBody = nil // it is sent once
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", string(p.key))
	answer, err := over.RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", err
	}
	told := strconv.Itoa(answer.StatusCode)
	if answer.Header.Get("Idempotent-Replayed") != "" {
		told += ", replayed"
	}
	for _, code := range []client.Code{client.CodeInProgress, client.CodePaymentInProgress, client.CodeUnavailable} {
		if strings.Contains(string(body), `"`+string(code)+`"`) {
			told += " " + string(code)
		}
	}
	return told, nil
}
