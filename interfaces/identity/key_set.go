package identity

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kakutei/application/port"
)

const (
	// askAgain is how often unknown keys may have the set read again: whoever makes up names of keys must not make the
	// service a burden for the provider.
	askAgain = 10 * time.Second
	// readAgain is how often the set is read without being asked: so long does a withdrawn key still count.
	readAgain = time.Minute
	// readTimeout is what one reading of the set may take.
	readTimeout = 5 * time.Second
	// patience is how long a reading of the set may have lasted while requests wait for it. It counts from the reading's
	// beginning, so that made-up names of keys hold requests up for two seconds in ten at most, however many come.
	patience = 2 * time.Second
)

// KeySet is an identity provider's keys as they were read last. A reading that fails leaves those that were there.
type KeySet struct {
	source Source
	log    *slog.Logger
	known  atomic.Pointer[[]verifier] // nil until it was read once

	mu      sync.Mutex
	reading *reading  // the one under way; nil when there is none
	asked   time.Time // when an unknown key had it read last
}

// reading is one reading of the set.
type reading struct {
	begun time.Time
	over  chan struct{} // closed in the end
}

// NewKeySet is the set at the source, not read yet.
func NewKeySet(source Source, log *slog.Logger) *KeySet { return &KeySet{source: source, log: log} }

// Read reads the set now. Error: why it could not be read; then the keys that were there stay.
func (s *KeySet) Read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	text, err := s.source(ctx)
	if err != nil {
		return err
	}
	keys, err := parseSet(text)
	if err != nil {
		return err
	}
	s.known.Store(&keys)
	return nil
}

// Len is how many keys are in use.
func (s *KeySet) Len() int {
	if known := s.known.Load(); known != nil {
		return len(*known)
	}
	return 0
}

// Run reads the set from time to time until ctx ends.
func (s *KeySet) Run(ctx context.Context) {
	again := time.NewTicker(readAgain)
	defer again.Stop()
	for {
		select {
		case <-again.C:
			s.reread(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// key implements Keys. A key that is not known has the set read again, and is waited for; who has a known one never
// waits.
func (s *KeySet) key(ctx context.Context, kid, algorithm string) (any, error) {
	if !ofKeySets(algorithm) { // whatever the set will be
		return nil, badAlgorithm
	}
	key, err := s.find(kid, algorithm)
	if !errors.Is(err, unknownKey) && !errors.Is(err, port.ErrUnavailable) {
		return key, err
	}
	if !s.refreshed(ctx) {
		return nil, err
	}
	return s.find(kid, algorithm)
}

// find looks into the set as it is. A token that names no key is the only key's that could have signed it. Errors:
// unknownKey, badAlgorithm; port.ErrUnavailable as long as there is no set.
func (s *KeySet) find(kid, algorithm string) (any, error) {
	known := s.known.Load()
	if known == nil {
		return nil, port.ErrUnavailable.Because(errors.New("the key set was not read yet"))
	}
	var named, fitting []verifier
	for _, v := range *known {
		if kid != "" && v.kid != kid {
			continue
		}
		named = append(named, v)
		if slices.Contains(v.algorithms, algorithm) {
			fitting = append(fitting, v)
		}
	}
	switch {
	case len(named) > 0 && len(fitting) == 0:
		return nil, badAlgorithm
	case len(fitting) == 1, len(fitting) > 1 && kid != "":
		return fitting[0].key, nil
	default:
		return nil, unknownKey
	}
}

// refreshed waits for a reading of the set, one under way or a new one if it is time for that, and tells whether there
// was one that ended in time.
func (s *KeySet) refreshed(ctx context.Context) bool {
	now := s.readingNow(ctx)
	if now == nil {
		return false
	}
	late := time.NewTimer(patience - time.Since(now.begun))
	defer late.Stop()
	select {
	case <-now.over:
		return true
	case <-late.C:
	case <-ctx.Done():
	}
	return false
}

// readingNow is the reading that a request may wait for; nil when the last one is too young.
func (s *KeySet) readingNow(ctx context.Context) *reading {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reading == nil {
		if !s.asked.IsZero() && time.Since(s.asked) < askAgain {
			return nil
		}
		s.asked = time.Now()
	}
	return s.begin(ctx)
}

// reread begins a reading unless one is under way.
func (s *KeySet) reread(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin(ctx)
}

// begin is the reading under way, or a new one; it is called with the mutex held. The reading does not end with the
// request that has asked for it: others wait for it, too.
func (s *KeySet) begin(ctx context.Context) *reading {
	if s.reading != nil {
		return s.reading
	}
	begun := &reading{begun: time.Now(), over: make(chan struct{})}
	s.reading = begun
	go func() {
		before := s.Len()
		err := s.Read(context.WithoutCancel(ctx))
		switch {
		case err != nil:
			s.log.Warn("the key set could not be read, the keys that were there stay", "error", err.Error(), "keys", before)
		case s.Len() == 0:
			s.log.Warn("the key set has no key that can be used: no token is accepted")
		case s.Len() != before:
			s.log.Info("the key set was read", "keys", s.Len())
		}
		s.mu.Lock()
		s.reading = nil
		s.mu.Unlock()
		close(begun.over)
	}()
	return begun
}
