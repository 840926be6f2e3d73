package main

import "log/slog"

// share leaves a database's server on the same machine half of the processors, unless the operator has said how many to use:
// a payment takes about as much of the one as of the other. With all of them Go's scheduler would have threads look for work
// where the server is to answer.
func (p program) share(s opened, log *slog.Logger) {
	if p.processors == nil || p.env("GOMAXPROCS") != "" || s.database == nil || !s.database.SharesMachine() {
		return
	}
	all := p.processors(0)
	if n := (all + 1) / 2; n < all {
		p.processors(n)
		log.Info("the database's server has the other processors of this machine", "processors", n, "of", all)
	}
}
