package gormstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/checkout"
	"kakutei/application/idempotent"
	"kakutei/application/port"
	"kakutei/domain/idempotency"
	"kakutei/domain/order"
	"kakutei/domain/payment"
	"kakutei/infrastructure/gormstore"
	"kakutei/infrastructure/gormstore/gormtest"
	"kakutei/infrastructure/gormstore/pgproxy"
	"kakutei/infrastructure/storetest"
)

// company is payments that go together: their reservations in one transaction, their completions in another.
type company struct {
	shop    storetest.Shop
	store   *gormstore.Store
	ids     []order.ID
	plays   []storetest.Call // of the provider, in turn; it approves the others
	answers []idempotent.Answer
	errs    []error
}

// makeCompany pays that many new orders over a store.
type makeCompany func(t *testing.T, s *gormstore.Store, n int) *company

// inEachWay runs a test with payments whose orders the store knows, does not know, and both in turn: who knows his order
// reserves in one exchange, the others ask first.
func inEachWay(t *testing.T, test func(t *testing.T, companyOf makeCompany)) {
	t.Helper()
	for name, knows := range map[string]func(i int) bool{
		"familiar orders": func(int) bool { return true }, "others": func(int) bool { return false },
		"both": func(i int) bool { return i%2 == 0 },
	} {
		t.Run(name, func(t *testing.T) {
			test(t, func(t *testing.T, s *gormstore.Store, n int) *company {
				t.Helper()
				shop := storetest.OpenShop(s, storetest.NewProvider())
				c := &company{
					shop: shop, store: s, ids: placed(t, shop, n),
					answers: make([]idempotent.Answer, n), errs: make([]error, n),
				}
				for i, id := range c.ids {
					if !knows(i) {
						s.Forget(id)
					}
				}
				return c
			})
		})
	}
}

// pay confirms all payments. before is done when all of them have been reserved and charged, but one that refuses or fails
// before: they are done in the end, and as many are completed together.
func (c *company) pay(t *testing.T, completing int, before func()) {
	t.Helper()
	c.payWhile(t, completing, before)
	assert.Zero(t, c.store.Connections().InUse)
}

// payWhile is pay beside somebody who may keep a connection that before has given him.
func (c *company) payWhile(t *testing.T, completing int, before func()) {
	t.Helper()
	var running sync.WaitGroup
	var done atomic.Int64
	calls := make([]*storetest.Held, completing)
	for i := range calls {
		play := storetest.Approving
		if i < len(c.plays) {
			play = c.plays[i]
		}
		held, call := storetest.Holding(play)
		calls[i] = held
		c.shop.Provider.Next(call)
	}
	c.store.Gather(t, len(c.ids), func() {
		for i, id := range c.ids {
			running.Go(func() {
				c.answers[i], c.errs[i] = c.shop.ConfirmPayment(t.Context(), storetest.Payment(id, fmt.Sprint("k", i)))
				done.Add(1)
			})
		}
	})
	for _, call := range calls {
		<-call.Reached
	}
	require.Eventually(t, func() bool {
		return done.Load() == int64(len(c.ids)-completing) && c.store.Connections().InUse == 0
	}, 10*time.Second, time.Millisecond)
	before()
	c.store.Gather(t, completing, func() {
		for _, call := range calls {
			call.Release()
		}
	})
	running.Wait()
	assert.Zero(t, c.store.Held(), "nobody holds anything in the end")
}

func (c *company) statusOf(t *testing.T, i int) (found order.State) {
	t.Helper()
	require.NoError(t, c.store.Read(t.Context(), func(tx port.Tx) error {
		o, err := tx.Orders().Find(t.Context(), c.ids[i], "alice")
		if err == nil {
			found = o.State()
		}
		return err
	}))
	return found
}

// assertPaid says that these payments were made, once, are booked and answered, and give the same answer again.
func (c *company) assertPaid(t *testing.T, which ...int) {
	t.Helper()
	for _, i := range which {
		require.NoError(t, c.errs[i], i)
		assert.Empty(t, c.answers[i].Refusal, i)
		s := c.statusOf(t, i)
		assert.Equal(t, order.Paid, s.Status, i)
		assert.Contains(t, string(c.answers[i].Document), s.PaymentID, i)
		assert.Equal(t, 1, c.shop.Provider.ChargesUnder(string(c.ids[i])+":1"), i)
		again, err := c.shop.ConfirmPayment(t.Context(), storetest.Payment(c.ids[i], fmt.Sprint("k", i)))
		require.NoError(t, err)
		assert.True(t, again.Replayed)
		assert.Equal(t, string(c.answers[i].Document), string(again.Document), i)
	}
}

func entriesIn(t *testing.T, d gormtest.Database) (n int) {
	t.Helper()
	require.NoError(t, d.SQL(t).QueryRowContext(t.Context(), "SELECT count(*) FROM journal_entries").Scan(&n))
	return n
}

func nothing() {}

func TestPaymentsThatWaitTogetherShareTwoTransactions(t *testing.T) {
	inEachWay(t, func(t *testing.T, companyOf makeCompany) {
		d := gormtest.PostgreSQL(t)
		c := companyOf(t, d.Open(t, 4), 7)
		before := c.store.Connections().Acquired
		c.pay(t, 7, nothing)
		assert.EqualValues(t, 2, c.store.Connections().Acquired-before, "one connection for all reservations, one for all completions")
		c.assertPaid(t, 0, 1, 2, 3, 4, 5, 6)
		assert.Equal(t, 7, entriesIn(t, d))
		documents := map[string]bool{}
		for _, a := range c.answers {
			documents[string(a.Document)] = true
		}
		assert.Len(t, documents, 7, "each has its own answer")
	})
}

// times keeps how long each COMMIT took, and how many were sent by another one than whose they are.
type times struct {
	mu      sync.Mutex
	commits []time.Duration
	led     int
}

func (w *times) Exchanging(_ context.Context, e gormstore.Exchange) func(error) {
	began := time.Now()
	w.mu.Lock()
	if bytes.Contains(debug.Stack(), []byte(".lead(")) {
		w.led++
	}
	w.mu.Unlock()
	return func(error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if e.Commits {
			w.commits = append(w.commits, time.Since(began))
		}
	}
}

func TestAWatchIsToldHowLongWhatACompanySendsIsOnItsWay(t *testing.T) {
	inEachWay(t, func(t *testing.T, companyOf makeCompany) {
		const slow = 20 * time.Millisecond
		d := gormtest.PostgreSQL(t)
		var w times
		c := companyOf(t, d.Open(t, 4).Watched(&w), 3)
		c.pay(t, 3, func() {
			d.Exec(t, fmt.Sprintf(`CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
				$$BEGIN PERFORM pg_sleep(%g); RETURN NEW; END$$`, slow.Seconds()))
			d.Exec(t, `CREATE TRIGGER slow BEFORE INSERT ON journal_entries FOR EACH ROW EXECUTE FUNCTION slow()`)
			w.commits, w.led = nil, 0
		})
		assert.Equal(t, 3, w.led)
		require.Len(t, w.commits, 3)
		for _, took := range w.commits {
			assert.GreaterOrEqual(t, took, 3*slow)
		}
	})
}

// What refuses, fails or finds its answer on record does so for itself: the others are reserved in the same transaction.
func TestWhatEndsWithoutACallEndsInCompanyToo(t *testing.T) {
	inEachWay(t, func(t *testing.T, companyOf makeCompany) {
		d := gormtest.PostgreSQL(t)
		elsewhere := companyOf(t, d.Open(t, 4), 7)
		for i, key := range []string{"another", "k1"} {
			_, err := elsewhere.shop.ConfirmPayment(t.Context(), storetest.Payment(elsewhere.ids[i], key))
			require.NoError(t, err)
		}
		reused := storetest.Payment(elsewhere.ids[1], "k3")
		_, err := elsewhere.shop.ConfirmPayment(t.Context(), reused)
		require.NoError(t, err)
		c := companyOf(t, d.Open(t, 4), 0) // another instance, which has seen none of them
		c.shop = storetest.OpenShop(c.store, elsewhere.shop.Provider)
		c.ids, c.answers, c.errs = slices.Clone(elsewhere.ids), elsewhere.answers, elsewhere.errs
		c.ids[2] = order.NewID()
		before := c.store.Connections().Acquired
		c.pay(t, 3, nothing)
		assert.EqualValues(t, 2, c.store.Connections().Acquired-before, "nobody has spoilt it for the others")
		c.assertPaid(t, 4, 5, 6)
		require.NoError(t, c.errs[0])
		assert.False(t, c.answers[0].Replayed, "another key for what is paid already")
		assert.Empty(t, c.answers[0].Refusal)
		require.NoError(t, c.errs[1])
		assert.True(t, c.answers[1].Replayed)
		require.ErrorIs(t, c.errs[2], order.ErrNotFound)
		assertNoRecord(t, c.store, storetest.Payment(c.ids[2], "k2"))
		require.ErrorIs(t, c.errs[3], idempotency.ErrKeyReused)
		assert.Equal(t, 5, c.shop.Provider.Charges())
	})
}

func assertNoRecord(t *testing.T, s *gormstore.Store, of checkout.ConfirmPayment) {
	t.Helper()
	assert.ErrorIs(t, s.Read(t.Context(), func(tx port.Tx) error {
		_, err := tx.Records().Find(t.Context(), storetest.ScopeOf(of))
		return err
	}), idempotency.ErrNotFound)
}

// A decline is an outcome as another: it is recorded beside the charges of the others.
func TestADeclineIsCompletedBesideCharges(t *testing.T) {
	inEachWay(t, func(t *testing.T, companyOf makeCompany) {
		c := companyOf(t, gormtest.PostgreSQL(t).Open(t, 4), 3)
		c.plays = []storetest.Call{storetest.Declining("card_declined")}
		before := c.store.Connections().Acquired
		c.pay(t, 3, nothing)
		assert.EqualValues(t, 2, c.store.Connections().Acquired-before)
		declined := slices.IndexFunc(c.answers, func(a idempotent.Answer) bool { return a.Refusal != "" })
		require.GreaterOrEqual(t, declined, 0)
		assert.Equal(t, order.Placed, c.statusOf(t, declined).Status)
		var paid []int
		for i := range c.ids {
			if i != declined {
				paid = append(paid, i)
			}
		}
		c.assertPaid(t, paid...)
	})
}

// What the database refuses to one, it refuses to nobody else: all start anew, alone.
func TestOneThatTheDatabaseRefusesCostsTheOthersNothing(t *testing.T) {
	inEachWay(t, func(t *testing.T, companyOf makeCompany) {
		for name, when := range map[string]string{"reserving": "PAYMENT_PENDING", "completing": "PAID"} {
			t.Run(name, func(t *testing.T) {
				d := gormtest.PostgreSQL(t)
				c := companyOf(t, d.Open(t, 4), 4)
				d.Exec(t, fmt.Sprintf(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
				IF NEW.id = '%s' AND NEW.status = '%s' THEN RAISE EXCEPTION 'a test' USING ERRCODE = 'P0001'; END IF;
				RETURN NEW;
			END $$`, c.ids[1], when))
				d.Exec(t, `CREATE TRIGGER refuse BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION refuse()`)
				if when == "PAID" {
					c.pay(t, 4, nothing)
					require.ErrorIs(t, c.errs[1], idempotency.ErrOutcomeUnknown)
					assert.Equal(t, order.PaymentPending, c.statusOf(t, 1).Status)
				} else {
					c.pay(t, 3, nothing)
					require.ErrorIs(t, c.errs[1], port.ErrUnavailable)
					assertNoRecord(t, c.store, storetest.Payment(c.ids[1], "k1"))
				}
				c.assertPaid(t, 0, 2, 3)
				d.Exec(t, `DROP TRIGGER refuse ON orders`)
				c.answers[1], c.errs[1] = c.shop.ConfirmPayment(t.Context(), storetest.Payment(c.ids[1], "k1"))
				c.assertPaid(t, 1)
				assert.Equal(t, 4, entriesIn(t, d))
			})
		}
	})
}

// A charge that two orders are to have is refused to one of them, whoever comes with whom.
func TestTwoOfACompanyWithOneChargeAreNotBothPaid(t *testing.T) {
	inEachWay(t, func(t *testing.T, companyOf makeCompany) {
		c := companyOf(t, gormtest.PostgreSQL(t).Open(t, 4), 3)
		c.shop.Gateway = oneCharge{c.shop.Gateway, c.ids[:2]}
		c.pay(t, 3, nothing)
		c.assertPaid(t, 2)
		var paid int
		for i := range 2 {
			if c.errs[i] == nil {
				paid++
				assert.Equal(t, order.Paid, c.statusOf(t, i).Status)
				continue
			}
			require.ErrorIs(t, c.errs[i], idempotency.ErrOutcomeUnknown)
			assert.Equal(t, order.PaymentPending, c.statusOf(t, i).Status)
		}
		assert.Equal(t, 1, paid)
	})
}

// oneCharge is a provider that gives some orders the same charge.
type oneCharge struct {
	payment.Gateway
	of []order.ID
}

func (p oneCharge) Charge(ctx context.Context, a payment.Attempt) (payment.Answer, error) {
	answer, err := p.Gateway.Charge(ctx, a)
	if charge, ok := answer.(payment.Charge); ok && slices.Contains(p.of, order.ID(a.OrderID)) {
		charge.ID = "ch_shared"
		answer = charge
	}
	return answer, err
}

// Whoever does something that takes long, panics or is told to stop does not take the others along.
func TestWhoeverFailsInCompanyFailsAlone(t *testing.T) {
	errUndone := errors.New("undone")
	for name, then := range map[string]func(cancel context.CancelFunc) error{
		"an error": func(context.CancelFunc) error { return errUndone },
		"a panic":  func(context.CancelFunc) error { panic(errUndone) },
		"its time is over": func(cancel context.CancelFunc) error {
			cancel()
			return nil
		},
		"it takes too long": func(context.CancelFunc) error {
			time.Sleep(300 * time.Millisecond)
			return errUndone
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := gormtest.PostgreSQL(t).Open(t, 4)
			reservations := make([]idempotency.Reservation, 4)
			errs := make([]error, len(reservations))
			var running sync.WaitGroup
			s.Gather(t, len(reservations), func() {
				for i := range reservations {
					reservations[i] = idempotency.Reservation{
						Scope: idempotency.Scope{Operation: "o", Actor: "a", Key: idempotency.Key(fmt.Sprint("k", i))},
						Token: idempotency.NewToken(),
					}
					running.Go(func() {
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						defer func() {
							if p := recover(); p != nil {
								errs[i] = p.(error)
							}
						}()
						errs[i] = s.Do(ctx, port.Briefly, func(tx port.Tx) error {
							_, err := tx.Records().Reserve(ctx, reservations[i], time.Minute)
							if err == nil && i == 1 {
								return then(cancel)
							}
							return err
						})
					})
				}
			})
			running.Wait()
			for i, n := range reservations {
				stands := s.Read(t.Context(), func(tx port.Tx) error {
					found, err := tx.Records().Find(t.Context(), n.Scope)
					if err == nil {
						assert.Equal(t, n.Token, found.Token)
					}
					return err
				})
				if i == 1 {
					require.Error(t, errs[i])
					require.ErrorIs(t, stands, idempotency.ErrNotFound)
				} else {
					require.NoError(t, errs[i])
					require.NoError(t, stands)
				}
			}
			assert.Zero(t, s.Held())
		})
	}
}

// Somebody else holds the row of one: the others do not wait for it, and that one waits as it always would.
func TestARowThatIsHeldKeepsNobodyElse(t *testing.T) {
	inEachWay(t, func(t *testing.T, companyOf makeCompany) {
		d := gormtest.PostgreSQL(t)
		c := companyOf(t, d.Open(t, 4), 4)
		hold := func() (letGo func()) {
			conn, err := pgx.Connect(t.Context(), d.URL)
			require.NoError(t, err)
			tx, err := conn.Begin(t.Context())
			require.NoError(t, err)
			_, err = tx.Exec(t.Context(), "SELECT FROM orders WHERE id = $1 FOR UPDATE", string(c.ids[2]))
			require.NoError(t, err)
			return func() {
				require.NoError(t, tx.Rollback(t.Context()))
				require.NoError(t, conn.Close(context.WithoutCancel(t.Context())))
			}
		}
		letGo := hold()
		c.pay(t, 3, nothing)
		require.ErrorIs(t, c.errs[2], order.ErrPaymentInProgress)
		letGo()
		c.assertPaid(t, 0, 1, 3)
		c.answers[2], c.errs[2] = c.shop.ConfirmPayment(t.Context(), storetest.Payment(c.ids[2], "k2"))
		c.assertPaid(t, 2)

		d = gormtest.PostgreSQL(t)
		c = companyOf(t, d.Open(t, 4), 4)
		c.pay(t, 4, func() {
			letGo = hold()
			time.AfterFunc(300*time.Millisecond, letGo)
		})
		c.assertPaid(t, 0, 1, 2, 3)
	})
}

// Who has lost his lease is told so, in whatever company he completes.
func TestAHolderWhoIsTooLateIsFencedInCompany(t *testing.T) {
	inEachWay(t, func(t *testing.T, companyOf makeCompany) {
		d := gormtest.PostgreSQL(t)
		c := companyOf(t, d.Open(t, 4), 3)
		there := storetest.OpenShop(d.Open(t, 4), c.shop.Provider)
		var winner idempotent.Answer
		c.pay(t, 3, func() {
			d.Exec(t, `UPDATE idempotency_records SET lease_expires_at = now() WHERE idempotency_key = 'k1'`)
			var err error
			winner, err = there.ConfirmPayment(t.Context(), storetest.Payment(c.ids[1], "k1"))
			require.NoError(t, err)
		})
		c.assertPaid(t, 0, 1, 2)
		assert.Equal(t, string(winner.Document), string(c.answers[1].Document))
		assert.Equal(t, 1, c.shop.Seen.Count(port.LeaseLost))
		assert.Equal(t, 3, entriesIn(t, d))
	})
}

// Only the record says that another one holds it now: the fence, which is one statement for all of them, stops him alone.
func TestTheFenceStopsOneOfACompanyAlone(t *testing.T) {
	inEachWay(t, func(t *testing.T, companyOf makeCompany) {
		d := gormtest.PostgreSQL(t)
		c := companyOf(t, d.Open(t, 4), 3)
		c.pay(t, 3, func() {
			d.Exec(t, `UPDATE idempotency_records SET token = gen_random_uuid() WHERE idempotency_key = 'k1'`)
		})
		c.assertPaid(t, 0, 2)
		require.Error(t, c.errs[1])
		assert.Equal(t, order.PaymentPending, c.statusOf(t, 1).Status)
		assert.Equal(t, 1, c.shop.Seen.Count(port.LeaseLost))
		assert.Equal(t, 2, entriesIn(t, d))
	})
}

// Nobody knows of a whole company's COMMIT: each finds out for itself, and nobody pays twice.
func TestACompanysCommitWithoutAnAnswerIsSettledByEach(t *testing.T) {
	inEachWay(t, func(t *testing.T, companyOf makeCompany) {
		for name, fault := range map[string]pgproxy.Fault{"applied": pgproxy.LoseAnswer, "lost": pgproxy.LoseCommit} {
			for when, nth := range map[string]int{"reservations": 1, "completions": 2} {
				t.Run(when+" "+name, func(t *testing.T) {
					d := gormtest.PostgreSQL(t)
					proxy, url := pgproxy.Between(t, d.URL)
					s, err := gormstore.Open(context.WithoutCancel(t.Context()), gormstore.Config{
						URL: url, Pool: 4, LockTimeout: 10 * time.Second,
					})
					require.NoError(t, err)
					defer func() { require.NoError(t, s.Close()) }()
					c := companyOf(t, s, 5)
					struck := proxy.Strike(nth, fault)
					c.pay(t, 5, nothing)
					<-struck
					c.assertPaid(t, 0, 1, 2, 3, 4)
					assert.Equal(t, 5, entriesIn(t, d))
					assert.Equal(t, 5, c.shop.Seen.Count(port.CommitUnknown))
				})
			}
		}
	})
}

// Two payments of one order, or two requests with one key, never go together: they would not exclude each other.
func TestWhatIsAboutTheSameDoesNotGoTogether(t *testing.T) {
	inEachWay(t, func(t *testing.T, companyOf makeCompany) {
		c := companyOf(t, gormtest.PostgreSQL(t).Open(t, 8), 3)
		var running sync.WaitGroup
		errs := make([]error, 5)
		pay := func(i int, id order.ID, key string) {
			shop := c.shop.Beside() // a gate of its own: the store has to see to it
			running.Go(func() { _, errs[i] = shop.ConfirmPayment(t.Context(), storetest.Payment(id, key)) })
		}
		held, call := storetest.Holding(storetest.Approving)
		c.shop.Provider.Next(call)
		c.store.Gather(t, 3, func() {
			for i, id := range c.ids {
				pay(i, id, fmt.Sprint("k", i))
			}
			require.Eventually(t, func() bool { return c.store.Held() == 6 }, 10*time.Second, time.Millisecond)
			pay(3, c.ids[0], "k0") // these go beside them, on connections of their own
			pay(4, c.ids[0], "another")
			<-held.Reached // one of the two has the order
		})
		held.Release()
		running.Wait()
		assert.NoError(t, errs[1])
		assert.NoError(t, errs[2])
		for _, i := range []int{0, 3, 4} {
			assert.True(t, errs[i] == nil || isDuplicate(errs[i]), errs[i])
		}
		assert.Equal(t, 1, c.shop.Provider.ChargesUnder(string(c.ids[0])+":1"))
		assert.Equal(t, 3, c.shop.Provider.Charges())
	})
}

// However large the tables are, and whatever the planner thinks of them: a company looks its rows up by their keys.
func TestACompanyReadsNoTableFromEndToEnd(t *testing.T) {
	inEachWay(t, func(t *testing.T, companyOf makeCompany) {
		d := gormtest.PostgreSQL(t)
		d.Exec(t, `INSERT INTO orders (id, customer_id, status, amount, currency, placed_at, version, lines)
		SELECT gen_random_uuid(), 'bob', 'PLACED', 1, 'JPY', now(), 1, '[]' FROM generate_series(1, 3000)`)
		scans := func() (n int) {
			require.NoError(t, d.SQL(t).QueryRowContext(t.Context(), `SELECT sum(seq_scan) FROM pg_stat_user_tables
			WHERE relname IN ('orders', 'idempotency_records', 'journal_entries')`).Scan(&n))
			return n
		}
		s := d.Open(t, 4)
		c := companyOf(t, s, 5)
		before := scans()
		c.pay(t, 5, nothing)
		require.NoError(t, s.Close())
		require.Eventually(t, func() bool { // what a session has counted it tells at its end, all at once
			var updated int
			require.NoError(t, d.SQL(t).QueryRowContext(t.Context(), `SELECT n_tup_upd FROM pg_stat_user_tables
			WHERE relname = 'orders'`).Scan(&updated))
			return updated == 2*len(c.ids)
		}, 10*time.Second, 10*time.Millisecond)
		assert.Equal(t, before, scans())
	})
}

func TestAStatementForManySaysWhoseEachAnswerIs(t *testing.T) {
	const from = `FROM ROWS FROM (json_to_recordset($1::json) AS (p1 text, p2 uuid)) WITH ORDINALITY AS each_of (p1, p2, nth)`
	for one, want := range map[string]string{
		`SELECT a FROM t WHERE x = $1 AND id = $2`: `SELECT each_of.nth, answer.* ` + from +
			` CROSS JOIN LATERAL (SELECT a FROM t WHERE x = each_of.p1 AND id = each_of.p2 OFFSET 0) AS answer`,
		`SELECT a FROM t WHERE x = $1 AND id = $2 FOR UPDATE`: `SELECT each_of.nth, answer.* ` + from +
			` CROSS JOIN LATERAL (SELECT a FROM t WHERE x = each_of.p1 AND id = each_of.p2 FOR UPDATE SKIP LOCKED) AS answer`,
		`INSERT INTO t (x, id) VALUES ($1, lower($2)) ON CONFLICT DO NOTHING`: `INSERT INTO t (x, id)` +
			` SELECT each_of.p1, lower(each_of.p2) ` + from + ` ON CONFLICT DO NOTHING`,
		`UPDATE t SET x = $1 WHERE id = $2`: `UPDATE t SET x = each_of.p1 ` + from + ` WHERE id = each_of.p2`,
	} {
		got, err := gormstore.ForMany(one, "text", "uuid")
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	for _, one := range []string{
		`INSERT INTO t (x) VALUES ($1) RETURNING x`, `UPDATE t SET x = $1 WHERE id = $2 RETURNING id`, `UPDATE t SET x = $1`,
		`TRUNCATE t`, `INSERT INTO t (x) VALUES ($1`,
	} {
		_, err := gormstore.ForMany(one, "text")
		require.Error(t, err, one)
	}
}

// PostgreSQL reads from a list what each value says for itself.
func TestTheArgumentsOfManyAreReadAsTheyAre(t *testing.T) {
	d := gormtest.PostgreSQL(t)
	conn, err := pgx.Connect(t.Context(), d.URL)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.WithoutCancel(t.Context()))) }()
	at := time.Date(2026, 12, 1, 9, 0, 0, 123456000, time.UTC)
	for typ, values := range map[string][]any{
		"text": {
			"", "a", nil, `NULL`, `null`, `{a,"b"}`, `back\slash`, "煎茶\t\n", `'`, " ", "\u2028", `"`, `\`, "0\x7f", "a,b", "\x01\x1f",
			"\\u0041", "/", "\U0001F375", "\uFFFD", "</script>",
		},
		"bytea":       {[]byte{}, []byte{0, 1, 255, '\\', '"'}, []byte(nil), []byte("{}")},
		"integer":     {0, -1, 1 << 30, nil},
		"bigint":      {int64(-1) << 62, int64(9007199254740991)},
		"boolean":     {true, false, nil},
		"timestamptz": {at, at.Truncate(time.Second), time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999999000, time.UTC), nil},
		"jsonb":       {`[{"sku": "a\\\"b", "name": "煎茶"}]`, `{}`},
		"uuid":        {"01990000-0000-7000-8000-000000000001"},
	} {
		t.Run(typ, func(t *testing.T) {
			document, err := gormstore.ArgumentsOf(typ, values...)
			require.NoError(t, err)
			many, err := gormstore.ForMany("SELECT $1", typ)
			require.NoError(t, err)
			for i, v := range values {
				var same bool
				q := fmt.Sprintf("SELECT p1 IS NOT DISTINCT FROM $3::%s FROM (%s) AS many (nth, p1) WHERE nth = $2", typ, many)
				require.NoError(t, conn.QueryRow(t.Context(), q, document, i+1, v).Scan(&same))
				assert.True(t, same, "%v in %s", v, document)
			}
		})
	}
	for typ, wrong := range map[string][]any{
		"text": {1, []byte("a"), "\x00", "\xff", "a\xc3"}, "bytea": {"a"}, "integer": {1 << 31, int64(1)}, "bigint": {"1"},
		"boolean": {1, "true"}, "timestamptz": {"now"}, "jsonb": {1, "", `{`, `1}`}, "uuid": {"a", ""}, "real": {1.5, "1.5"},
	} {
		for _, value := range wrong {
			_, err = gormstore.ArgumentsOf(typ, value)
			require.Error(t, err, "%s: %q", typ, value)
		}
	}
}

// A company is given up by a timer, which may be faster than whoever has just formed it. The race detector tells.
func TestACompanyIsWholeBeforeItIsGivenUp(*testing.T) { gormstore.GivenUp() }

// reservationOf is one that no other test has.
func reservationOf(key string) idempotency.Reservation {
	return idempotency.Reservation{
		Scope: idempotency.Scope{Operation: "o", Actor: "a", Key: idempotency.Key(key)}, Token: idempotency.NewToken(),
	}
}

// The others wait for a database that says nothing for as long as they may, and nobody waits any longer than he may.
func TestWhoseTimeIsOverDoesNotWaitWithHisCompany(t *testing.T) {
	d := gormtest.PostgreSQL(t)
	proxy, url := pgproxy.Between(t, d.URL)
	s, err := gormstore.Open(context.WithoutCancel(t.Context()), gormstore.Config{URL: url, Pool: 4, LockTimeout: 2 * time.Second})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	assertNoRecord(t, s, storetest.Payment(order.NewID(), "none")) // there is a connection
	errs := make([]error, 3)
	told := make(chan time.Duration, 1)
	var running sync.WaitGroup
	began := time.Now()
	s.Gather(t, len(errs), func() {
		proxy.Stall()
		for i := range errs {
			running.Go(func() {
				left := time.Hour
				if i == 1 {
					left = time.Second
					defer func() { told <- time.Since(began) }()
				}
				ctx, cancel := context.WithTimeout(t.Context(), left)
				defer cancel()
				errs[i] = s.Do(ctx, port.Briefly, func(tx port.Tx) error {
					_, err := tx.Records().Reserve(ctx, reservationOf(fmt.Sprint("k", i)), time.Minute)
					return err
				})
			})
		}
	})
	assert.Less(t, <-told, 3*time.Second)
	proxy.Mend()
	running.Wait()
	require.NoError(t, errs[0])
	require.ErrorIs(t, errs[1], port.ErrUnavailable)
	require.NoError(t, errs[2])
}

// Who finds his order's row held waits for it as he would without company: for a moment, and the others do not.
func TestARowThatIsHeldForAMomentIsWaitedForAfterCompany(t *testing.T) {
	inEachWay(t, func(t *testing.T, companyOf makeCompany) {
		d := gormtest.PostgreSQL(t)
		c := companyOf(t, d.Open(t, 4), 4)
		conn, err := pgx.Connect(t.Context(), d.URL)
		require.NoError(t, err)
		defer func() { require.NoError(t, conn.Close(context.WithoutCancel(t.Context()))) }()
		_, err = conn.Exec(t.Context(), "BEGIN")
		require.NoError(t, err)
		_, err = conn.Exec(t.Context(), "SELECT FROM orders WHERE id = $1 FOR UPDATE", string(c.ids[2]))
		require.NoError(t, err)
		// The server itself lets go of the row when somebody waits for it, who does so for a tenth of a second only.
		released := make(chan error, 1)
		go func() {
			_, err := conn.Exec(t.Context(), `DO $$BEGIN
				FOR i IN 1 .. 10000 LOOP
					IF EXISTS (SELECT FROM pg_locks WHERE NOT granted AND transactionid = pg_current_xact_id()::xid) THEN
						RETURN;
					END IF;
					PERFORM pg_sleep(0.001);
				END LOOP;
				RAISE 'nobody has waited';
			END$$; ROLLBACK`)
			released <- err
		}()
		calls := make([]*storetest.Held, 4)
		for i := range calls {
			var call storetest.Call
			calls[i], call = storetest.Holding(storetest.Approving)
			c.shop.Provider.Next(call)
		}
		var running sync.WaitGroup
		c.store.Gather(t, 4, func() {
			for i, id := range c.ids {
				running.Go(func() {
					c.answers[i], c.errs[i] = c.shop.ConfirmPayment(t.Context(), storetest.Payment(id, fmt.Sprint("k", i)))
				})
			}
		})
		for _, call := range calls[:3] { // the others have been reserved
			<-call.Reached
			call.Release()
		}
		require.NoError(t, <-released)
		calls[3].Release()
		running.Wait()
		c.assertPaid(t, 0, 1, 2, 3)
	})
}

// Who leaves a company to start anew alone finds nothing held by the transaction that he has left, however long its COMMIT
// takes: else a payment that has to be taken over would be in progress for as long as there is company.
func TestWhoStartsAnewAloneDoesNotMeetTheCompanyThatHeHasLeft(t *testing.T) {
	inEachWay(t, func(t *testing.T, companyOf makeCompany) {
		d := gormtest.PostgreSQL(t)
		c := companyOf(t, d.Open(t, 4), 4)
		for i := range 2 {
			c.shop.Provider.Next(storetest.Unreachable)
			_, err := c.shop.ConfirmPayment(t.Context(), storetest.Payment(c.ids[i], fmt.Sprint("k", i)))
			require.ErrorIs(t, err, idempotency.ErrOutcomeUnknown)
		}
		d.Exec(t, `CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.4); RETURN NULL; END $$`)
		d.Exec(t, fmt.Sprintf(`CREATE CONSTRAINT TRIGGER linger AFTER UPDATE ON orders DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW WHEN (NEW.id = '%s' AND NEW.status = 'PAYMENT_PENDING') EXECUTE FUNCTION linger()`, c.ids[3]))
		var running sync.WaitGroup
		c.store.Gather(t, 4, func() {
			for i, id := range c.ids {
				running.Go(func() {
					c.answers[i], c.errs[i] = c.shop.ConfirmPayment(t.Context(), storetest.Payment(id, fmt.Sprint("k", i)))
				})
			}
		})
		running.Wait()
		c.assertPaid(t, 0, 1, 2, 3)
		assert.Zero(t, c.store.Held())
	})
}
