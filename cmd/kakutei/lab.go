package main

import (
	"log/slog"
	"net/http"
	"time"

	"kakutei/application/port"
	"kakutei/infrastructure/memory"
	"kakutei/interfaces/lab"
)

// labPages are the pages of the lab. Each of its runs has a store of its own, in memory: nothing in it touches the
// service's.
func labPages(log *slog.Logger) map[string]http.Handler {
	inMemory := func(clock func() time.Time) port.UnitOfWork { return memory.New(clock) }
	return lab.NewPages(lab.New(inMemory), log).Handlers()
}
