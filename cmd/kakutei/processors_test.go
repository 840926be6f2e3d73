package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/infrastructure/gormstore"
	"kakutei/infrastructure/gormstore/pgtest"
)

func TestADatabaseOnTheSameMachineHasHalfOfTheProcessors(t *testing.T) {
	const here, elsewhere = "postgres://127.0.0.1/k", "postgres://db.example/k"
	for _, c := range []struct {
		url       string
		all, uses int
		set       string
	}{
		{here, 1, 1, ""},
		{here, 2, 1, ""},
		{here, 3, 2, ""},
		{here, 16, 8, ""},
		{here, 2, 2, "2"},
		{elsewhere, 2, 2, ""},
		{"sqlite:" + t.TempDir() + "/k.db", 2, 2, ""},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			s, err := gormstore.Open(t.Context(), gormstore.Config{URL: c.url, Pool: 1, LockTimeout: time.Second})
			require.NoError(t, err)
			uses := c.all
			var log bytes.Buffer
			program{
				env: func(string) string { return c.set },
				processors: func(n int) int {
					before := uses
					if n > 0 {
						uses = n
					}
					return before
				},
			}.share(opened{database: s}, slog.New(slog.NewTextHandler(&log, nil)))
			assert.Equal(t, c.uses, uses)
			assert.Equal(t, c.uses < c.all, log.Len() > 0, "whoever is given less is told so: %s", &log)
			require.NoError(t, s.Close())
		})
	}
	program{env: func(string) string { return "" }, processors: func(int) int { panic("asked for none") }}.share(opened{}, nil)
}

func TestHowManyProcessorsTheServiceUses(t *testing.T) {
	all := runtime.GOMAXPROCS(0)
	url := pgtest.Empty(t)
	s, err := gormstore.Open(t.Context(), gormstore.Config{URL: url, Pool: 1, LockTimeout: time.Second})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	shared := all
	if s.SharesMachine() {
		shared = (all + 1) / 2
	}
	for set, uses := range map[string]int{"": shared, fmt.Sprint(all): all} {
		i := groundOn(t, url).with("GOMAXPROCS", set).start()
		i.shows(fmt.Sprint("go_sched_gomaxprocs_threads ", uses))
	}
	i := groundOn(t, sqliteFile(t)).start()
	i.shows(fmt.Sprint("go_sched_gomaxprocs_threads ", all))
}
