package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// standIn is a program that stands for the service.
func standIn(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "service")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700))
	return path
}

func TestASweepStandsStillWhilePaymentsAreMeasuredWithoutIt(t *testing.T) {
	on := filepath.Join(t.TempDir(), "go")
	w, err := sweep(t.Context(), standIn(t, "until [ -e "+on+" ]; do sleep 0.01; done"), "url")
	require.NoError(t, err)
	isStopped := func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.process.Pid))
		return err == nil && bytes.Contains(stat, []byte(") T "))
	}
	const stood = 300 * time.Millisecond
	asked := 0
	restsThen := func() (bool, error) {
		asked++
		return asked == 3, nil
	}
	require.ErrorIs(t, w.paused(restsThen, func() error {
		assert.Equal(t, 3, asked)
		assert.Eventually(t, isStopped, 10*time.Second, time.Millisecond)
		require.NoError(t, os.WriteFile(on, nil, 0o600))
		select {
		case <-w.over:
			assert.Fail(t, "it goes on")
		case <-time.After(stood):
		}
		return assert.AnError
	}), assert.AnError)
	require.NoError(t, w.wait())
	assert.LessOrEqual(t, w.took(), time.Since(w.begun)-stood)
	rests := func() (bool, error) { return true, nil }
	require.NoError(t, w.paused(rests, func() error { return nil }), "it is over")
}

func TestASweepThatFailsSaysWhy(t *testing.T) {
	w, err := sweep(t.Context(), standIn(t, `echo "$*" >&2; exit 3`), "url")
	require.NoError(t, err)
	require.EqualError(t, w.wait(), "exit status 3: sweep --database-url url\n")
}

func TestLateIsWhatTakesTwiceAsLong(t *testing.T) {
	times := []time.Duration{time.Millisecond, 20 * time.Millisecond, 20*time.Millisecond + 1, time.Second}
	assert.InDelta(t, 0.5, late(times, 10), 0)
}
