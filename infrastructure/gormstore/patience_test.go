package gormstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kakutei/application/port"
	"kakutei/infrastructure/gormstore"
)

// during are the companies in which clients go for a second, after one in which they meet: each makes its next transaction
// some time after the last one is answered.
func during(t *testing.T, d *gormstore.Database, clients int, pause func(client int) time.Duration) (companies []int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var all sync.WaitGroup
		end := time.Now().Add(2 * time.Second)
		for client := range clients {
			all.Go(func() {
				for time.Now().Before(end) {
					time.Sleep(pause(client))
					assert.NoError(t, d.Go(t.Context(), fmt.Sprint("order ", client)))
				}
			})
		}
		time.Sleep(time.Second)
		d.Companies()
		time.Sleep(time.Second - time.Nanosecond)
		companies = d.Companies()
		all.Wait()
	})
	return companies
}

// Who comes while a company is at it would go with the others who do, and they with nobody of the company: half of all.
func TestThoseWhoWentTogetherAreWaitedFor(t *testing.T) {
	for _, n := range []int{2, 8, 32} {
		companies := during(t, gormstore.NewDatabase(t, 2*time.Millisecond, nil), n,
			func(client int) time.Duration { return time.Duration(200+10*client) * time.Microsecond })
		assert.Equal(t, slices.Repeat([]int{n}, len(companies)), companies)
		assert.Greater(t, len(companies), 350, "no longer than until they are there")
	}
}

// Half of them begin with what the others end with, and so it would stay.
func TestWhoBeginAndFinishComeToDoTheSameAtTheSameTime(t *testing.T) {
	for _, n := range []int{4, 8, 32} {
		d := gormstore.NewDatabase(t, 2*time.Millisecond, nil)
		var companies, sent []int
		synctest.Test(t, func(t *testing.T) {
			var all sync.WaitGroup
			end := time.Now().Add(time.Second)
			for client := range n {
				all.Go(func() {
					about := fmt.Sprint("order ", client)
					for turn := client; time.Now().Before(end); turn++ {
						time.Sleep(time.Duration(200+10*client) * time.Microsecond)
						if turn%2 == 0 {
							assert.NoError(t, d.Go(t.Context(), about))
						} else {
							assert.NoError(t, d.Finish(t.Context(), about))
						}
					}
				})
			}
			time.Sleep(time.Second / 2)
			d.Companies()
			d.Sent()
			time.Sleep(time.Second/2 - time.Nanosecond)
			companies, sent = d.Companies(), d.Sent()
			all.Wait()
		})
		assert.Equal(t, slices.Repeat([]int{n}, len(companies)), companies)
		assert.Equal(t, slices.Repeat([]int{1}, len(sent)), sent)
		assert.Greater(t, len(companies), 175)
	}
}

func TestOneAloneWaitsForNobody(t *testing.T) {
	companies := during(t, gormstore.NewDatabase(t, 2*time.Millisecond, nil), 1,
		func(int) time.Duration { return 501 * time.Microsecond })
	assert.Equal(t, slices.Repeat([]int{1}, len(companies)), companies)
	assert.Greater(t, len(companies), 390)
}

// Clients who think for longer than a company takes come by chance, and those who have come go: what is lost by waiting for
// the others is little.
func TestWhoDoesNotComeIsNotWaitedForMuchLonger(t *testing.T) {
	const think, takes = 21 * time.Millisecond, 2 * time.Millisecond
	d := gormstore.NewDatabase(t, takes, nil)
	var mu sync.Mutex
	var turns int
	var took time.Duration
	var failed error
	synctest.Test(t, func(t *testing.T) {
		var all sync.WaitGroup
		for client := range 6 {
			all.Go(func() {
				for turn := range 200 {
					time.Sleep(think + time.Duration((client*7+turn*3)%11)*time.Millisecond)
					started := time.Now()
					err := d.Go(t.Context(), fmt.Sprint("order ", client))
					mu.Lock()
					failed = errors.Join(failed, err)
					if turn >= 20 {
						turns, took = turns+1, took+time.Since(started)
					}
					mu.Unlock()
				}
			})
		}
		all.Wait()
	})
	require.NoError(t, failed)
	require.Equal(t, 6*180, turns)
	assert.Less(t, took/time.Duration(turns), 27*takes/20)
}

func TestWaitingInVainIsSparedLongerEachTime(t *testing.T) {
	p, now := gormstore.NewPatience(), time.Now()
	spared := func() (n int) {
		for p.Expect(3, 1, now); !p.IsWorthwhile(3, 64, time.Millisecond, now); n++ {
			require.Less(t, n, 1000)
		}
		return n
	}
	assert.Zero(t, spared(), "at first it is tried")
	for _, n := range []int{1, 2, 4, 8, 16, 32, 64, 64} {
		p.Waited(true)
		assert.Equal(t, n, spared())
	}
	p.Waited(false)
	assert.Zero(t, spared(), "they have come")
	p.Waited(true)
	assert.Equal(t, 1, spared())
}

func TestHowManyAreWaitedForAndHowLong(t *testing.T) {
	p, now := gormstore.NewPatience(), time.Now()
	isWorthwhile := func(waiting, atMost int, later time.Duration) bool {
		return p.IsWorthwhile(waiting, atMost, 500*time.Microsecond, now.Add(later))
	}
	assert.False(t, isWorthwhile(1, 64, 0), "nobody has gone yet")
	p.Expect(1, 0, now)
	assert.False(t, isWorthwhile(1, 64, 0), "who came alone")
	p.Expect(5, 3, now)
	assert.True(t, isWorthwhile(7, 64, 0))
	assert.False(t, isWorthwhile(8, 64, 0), "all are here")
	assert.False(t, isWorthwhile(4, 4, 0), "no more can go together")
	assert.True(t, isWorthwhile(1, 64, 4*time.Millisecond-1), "as long as eight take")
	assert.False(t, isWorthwhile(1, 64, 4*time.Millisecond), "they went long ago")
	p.Expect(32, 0, now)
	assert.True(t, isWorthwhile(1, 64, 5*time.Millisecond-1))
	assert.False(t, isWorthwhile(1, 64, 5*time.Millisecond), "and no longer than that")
}

// One who comes when the others are long gone is alone.
func TestWhoComesLaterGoesAtOnce(t *testing.T) {
	d := gormstore.NewDatabase(t, 2*time.Millisecond, nil)
	synctest.Test(t, func(t *testing.T) {
		var all sync.WaitGroup
		for client := range 8 {
			all.Go(func() {
				for range 3 {
					assert.NoError(t, d.Go(t.Context(), fmt.Sprint("order ", client)))
				}
			})
		}
		all.Wait()
		require.Contains(t, d.Companies(), 8)
		time.Sleep(time.Second)
		started := time.Now()
		require.NoError(t, d.Go(t.Context(), "order"))
		assert.Equal(t, 2*time.Millisecond, time.Since(started))
	})
}

func TestWhereNobodyWaitsForCompany(t *testing.T) {
	for _, c := range []struct {
		name  string
		lanes int
		reads bool
		takes time.Duration
	}{
		{"payments on one lane wait", 1, false, 7 * time.Millisecond},
		{"on two they do not", 2, false, 2 * time.Millisecond},
		{"reads do not", 1, true, 2 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := gormstore.NewDatabase(t, 2*time.Millisecond, nil)
			d.Widens(c.lanes)
			synctest.Test(t, func(t *testing.T) {
				d.Expects(5)
				started := time.Now()
				require.NoError(t, d.GoBy(t.Context(), "order", c.reads, nil))
				assert.Equal(t, c.takes, time.Since(started))
			})
		})
	}
}

// three has three transactions wait behind one that goes alone, and tells what becomes of them and when.
func three(ctx context.Context, t *testing.T, d *gormstore.Database, sends func(i int)) (errs []error) {
	t.Helper()
	told := make(chan error, 3)
	go func() { assert.NoError(t, d.Go(context.WithoutCancel(ctx), "order")) }()
	time.Sleep(time.Microsecond)
	for i := range 3 {
		go func() {
			defer func() {
				if p := recover(); p != nil {
					told <- fmt.Errorf("panicked: %v", p)
				}
			}()
			told <- d.GoBy(ctx, fmt.Sprint("order ", i), false, func() { sends(i) })
		}()
		time.Sleep(time.Microsecond)
	}
	for range 3 {
		errs = append(errs, <-told)
	}
	return errs
}

// A bug in what a company sends ends neither the process nor anybody's wait. One of its members panics in the end, as who
// goes alone would; the others start anew alone, or find out whether it was committed.
func TestAPanicOfWhoLeadsEndsTheCompany(t *testing.T) {
	inCompany := func(members int) {
		if members > 1 {
			panic("a bug")
		}
	}
	watching := func(i int) {
		if i == 1 {
			panic("a bug of a watch")
		}
	}
	for name, c := range map[string]struct {
		fails func(int)
		sends func(int)
		told  error
	}{
		"when COMMIT may have been sent": {inCompany, func(int) {}, port.ErrCommitUnknown},
		"before anything is sent":        {nil, watching, gormstore.ErrAlone},
	} {
		t.Run(name, func(t *testing.T) {
			d := gormstore.NewDatabase(t, 2*time.Millisecond, c.fails)
			synctest.Test(t, func(t *testing.T) {
				panics := 0
				for _, err := range three(t.Context(), t, d, c.sends) {
					if err != nil && strings.HasPrefix(err.Error(), "panicked: in company: a bug") {
						panics++
					} else {
						require.ErrorIs(t, err, c.told)
					}
				}
				assert.Equal(t, 1, panics)
				require.NoError(t, d.Go(t.Context(), "order 4"), "the lane is free again")
				assert.Zero(t, d.Held())
			})
		})
	}
}

// Nobody waits for a database that says nothing longer than he may, in whatever company.
func TestACompanyThatIsLedEndsWithTheFirstWhoseTimeIsOver(t *testing.T) {
	d := gormstore.NewDatabase(t, 20*time.Millisecond, nil)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		started := time.Now()
		for _, err := range three(ctx, t, d, func(int) {}) {
			require.ErrorIs(t, err, gormstore.ErrAlone)
		}
		assert.Equal(t, 30*time.Millisecond, time.Since(started))
	})
}

// Who finds a lane that has just been added has those go first who wait, and is not kept by them.
func TestWhoHasOthersGoDoesNotWaitForThem(t *testing.T) {
	d := gormstore.NewDatabase(t, 40*time.Millisecond, nil)
	d.Together(2)
	synctest.Test(t, func(t *testing.T) {
		var others sync.WaitGroup
		for i := range 4 { // one goes, two would be next
			others.Go(func() { assert.NoError(t, d.Go(t.Context(), fmt.Sprint("order ", i))) })
			time.Sleep(time.Millisecond)
		}
		d.Widens(2)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		started := time.Now()
		require.Error(t, d.Go(ctx, "order 5"))
		assert.Equal(t, 10*time.Millisecond, time.Since(started))
		others.Wait()
	})
}
