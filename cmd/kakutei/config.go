package main

import (
	"errors"
	"fmt"
	"time"
)

// The variables of docs/contract.md, by what they are about. A command reads those that it needs.

// storeConfig says where the data is.
type storeConfig struct {
	url         string
	pool        int           // connections at most
	lockTimeout time.Duration // longest wait for a row or a connection
}

func (c *storeConfig) variables() []variable {
	return []variable{
		{
			name: "KAKUTEI_DATABASE_URL", initial: "sqlite:kakutei.db", set: into(&c.url, databaseURL),
			means: "the store: sqlite:FILE, memory: (forgotten at exit) or postgres://… (postgresql://…)",
		},
		{
			name: "KAKUTEI_DB_POOL", initial: "16", set: into(&c.pool, count),
			means: "connections to the store at most (SQLite: readers beside one writer)",
		},
		{
			name: "KAKUTEI_LOCK_TIMEOUT", initial: "1s", set: into(&c.lockTimeout, positive),
			means: "longest wait for a row or for a connection",
		},
	}
}

// lasting refuses the store that a command of its own would find empty and leave empty.
func (c *storeConfig) lasting() error {
	if c.url == inMemory {
		return errors.New("KAKUTEI_DATABASE_URL: a store in memory: belongs to the process that serves it, " +
			"no other command can reach it")
	}
	return nil
}

// gatewayConfig says who takes the money.
type gatewayConfig struct {
	url          string // or simulator
	timeout      time.Duration
	keyRetention time.Duration
	token        string
	book         string
}

// simulator is the built-in provider, inMemory a place that is gone with the process.
const (
	simulator = "simulator"
	inMemory  = "memory:"
)

func (c *gatewayConfig) variables() []variable {
	return []variable{
		{
			name: "KAKUTEI_GATEWAY", initial: simulator, set: into(&c.url, gatewayURL),
			means: "the payment provider: simulator (built in) or a base URL, http:// or https://",
		},
		{
			name: "KAKUTEI_GATEWAY_TIMEOUT", initial: "10s", set: into(&c.timeout, positive),
			means: "longest wait for the provider's answer",
		},
		{
			name: "KAKUTEI_GATEWAY_KEY_RETENTION", initial: "12h", set: into(&c.keyRetention, positive),
			means: "how long the provider surely knows a charge again; older ones are looked up, never sent",
		},
		{
			name: "KAKUTEI_GATEWAY_TOKEN", secret: true, set: into(&c.token, gatewayToken),
			means: "bearer token for the provider; empty: none is sent",
		},
		{
			name: "KAKUTEI_SIMULATOR_BOOK", initial: "store", set: into(&c.book, oneOf("store", inMemory)),
			means: "where the simulator keeps its charges: store (the service's own) or memory: (for measuring)",
		},
	}
}

// accessConfig says who may call.
type accessConfig struct {
	listen  string
	auth    string
	exposed string
}

// The modes of authentication.
const (
	demo    = "demo"
	jwtMode = "jwt"
)

// exposed is what says that demo mode may be reached from other machines.
const exposed = "yes"

func (c *accessConfig) variables() []variable {
	return []variable{
		{
			name: "KAKUTEI_LISTEN", initial: "127.0.0.1:8080", set: into(&c.listen, address),
			means: "host:port to listen on; port 0 takes a free one",
		},
		{
			name: "KAKUTEI_AUTH", initial: demo, set: into(&c.auth, oneOf(demo, jwtMode)),
			means: "who is believed: demo, where everybody may be anybody, or jwt, whoever has a verified token",
		},
		{
			name: "KAKUTEI_DEMO_EXPOSED", set: into(&c.exposed, oneOf("", exposed)),
			means: "yes lets demo mode be reached from other machines, e.g. out of a container of your own",
		},
	}
}

// check refuses to let strangers be anybody.
func (c *accessConfig) check() error {
	if c.auth == demo && c.exposed == "" && !onLoopback(c.listen) {
		return fmt.Errorf("KAKUTEI_LISTEN: %.80q can be reached from other machines, where in demo mode everybody may be "+
			"anybody; listen on 127.0.0.1, or set KAKUTEI_DEMO_EXPOSED=yes", c.listen)
	}
	return nil
}

// workConfig says how long things may take and last.
type workConfig struct {
	lease         time.Duration
	retention     time.Duration
	auditFor      time.Duration
	sweepInterval time.Duration // 0: off
	recoverEvery  time.Duration // 0: off
	compareEvery  time.Duration // 0: off
	grace         time.Duration
}

func (c *workConfig) variables() []variable {
	return []variable{
		{
			name: "KAKUTEI_LEASE", initial: "30s", set: into(&c.lease, positive),
			means: "how long a request is its holder's; longer than KAKUTEI_GATEWAY_TIMEOUT",
		},
		{
			name: "KAKUTEI_RETENTION", initial: "24h", set: into(&c.retention, positive),
			means: "how long a finished request is answered from its record",
		},
		{
			name: "KAKUTEI_AUDIT_RETENTION", initial: "8760h", set: into(&c.auditFor, positive),
			means: "how long an entry of the audit log is kept",
		},
		{
			name: "KAKUTEI_SWEEP_INTERVAL", initial: "1m", set: into(&c.sweepInterval, positiveOrOff),
			means: "how often expired records and audit entries are deleted; 0 turns it off",
		},
		{
			name: "KAKUTEI_RECOVERY_INTERVAL", initial: "10s", set: into(&c.recoverEvery, positiveOrOff),
			means: "how often payments that were left in progress are tried again; 0 turns it off",
		},
		{
			name: "KAKUTEI_RECONCILE_INTERVAL", initial: "0", set: into(&c.compareEvery, positiveOrOff),
			means: "how often the provider's charges are compared with orders and entries; 0 turns it off",
		},
		{
			name: "KAKUTEI_SHUTDOWN_GRACE", initial: "15s", set: into(&c.grace, positive),
			means: "how long running requests may take to end after SIGTERM",
		},
	}
}

// check refuses a lease that is over while its holder may still be waiting for the provider: another one would take
// over and ask as well.
func (c *workConfig) check(gatewayTimeout time.Duration) error {
	if c.lease <= gatewayTimeout {
		return fmt.Errorf("KAKUTEI_LEASE (%s) must be longer than KAKUTEI_GATEWAY_TIMEOUT (%s)", c.lease, gatewayTimeout)
	}
	return nil
}

// booksConfig says whose books a payment enters, and where its day ends.
type booksConfig struct {
	company string
	zone    *time.Location
}

func (c *booksConfig) variables() []variable {
	return []variable{
		{
			name: "KAKUTEI_COMPANY_ID", initial: "shop", set: into(&c.company, company),
			means: "the company in whose books a confirmed payment is entered",
		},
		{
			name: "KAKUTEI_TIME_ZONE", initial: "Asia/Tokyo", set: into(&c.zone, zone),
			means: "the zone in which the shop's day ends: the date of a payment's entry",
		},
	}
}
