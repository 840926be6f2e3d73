package scenario

import (
	"context"
	"errors"
	"time"
)

// The simulator's payment methods (docs/contract.md, Orders): how the provider treats a payment.
const (
	approves    = ""
	declines    = "pm_declined"
	lacksMoney  = "pm_insufficient_funds"
	losesAnswer = "pm_lost_answer"
	failsOnce   = "pm_unavailable"
	isDown      = "pm_down"
	isSlow      = "pm_slow_3000" // on a black box, which cannot be told to wait
)

// providerSteps are what the payment provider does with the next payments.
func providerSteps() []step {
	treats := func(method string) func(context.Context, *world) error {
		return func(_ context.Context, w *world) error {
			w.method = method
			return nil
		}
	}
	return []step{
		plain("the gateway declines", "決済ゲートウェイが承認を拒否する", treats(declines)),
		plain("the gateway finds too little money", "決済ゲートウェイが残高不足と答える", treats(lacksMoney)),
		plain("the gateway takes the money and loses the answer", "決済ゲートウェイが代金を受け取り応答を失う", treats(losesAnswer)),
		plain("the gateway fails once", "決済ゲートウェイが一度だけ失敗する", treats(failsOnce)),
		plain("the gateway is down", "決済ゲートウェイが停止している", treats(isDown)),
		plain("the gateway works again", "決済ゲートウェイが復旧する", treats(approves)),
		plain("the gateway is slow", "決済ゲートウェイの応答が遅い", func(_ context.Context, w *world) error {
			if w.against.Inside == nil {
				w.method = isSlow
				return nil
			}
			w.against.Inside.Hold()
			return nil
		}),
		plain("the gateway answers", "決済ゲートウェイが応答する", func(ctx context.Context, w *world) error {
			if w.against.Inside != nil {
				w.against.Inside.Release()
			}
			return w.ended(ctx)
		}),
		within(plain("the gateway's list cannot be read", "決済ゲートウェイの明細を読めない",
			func(_ context.Context, w *world) error {
				w.against.Inside.ListAway(true)
				return nil
			})),
	}
}

// ended waits for what is under way.
func (w *world) ended(ctx context.Context) error {
	if w.running == nil {
		return nil
	}
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case err := <-w.running:
		w.running = nil
		if err == nil {
			w.whenEnded()
		}
		return err
	case <-timeout.C:
		return errors.New("the request that is under way does not end")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// faultSteps are what befalls the service, and how time goes by.
func faultSteps() []step {
	crashes := func(m Moment) func(context.Context, *world) error {
		return func(_ context.Context, w *world) error {
			w.against.Inside.CrashAt(m)
			return nil
		}
	}
	return []step{
		within(sentence("{time} pass", "24 hours pass", "{time}が経過する", "24時間が経過する",
			func(ctx context.Context, w *world, b blanks) error {
				d, err := b.time()
				if err != nil {
					return err
				}
				return w.pass(ctx, d)
			})),
		within(plain("the lease is over", "リースの期限が切れる", func(ctx context.Context, w *world) error {
			return w.pass(ctx, w.against.Inside.Lease()+time.Second)
		})),
		within(plain("the service will crash before it asks the gateway",
			"サービスは決済ゲートウェイに問い合わせる前にクラッシュする", crashes(BeforeCharge))),
		within(plain("the service will crash after the gateway has taken the money",
			"サービスは決済ゲートウェイが代金を受け取った後にクラッシュする", crashes(AfterCharge))),
		within(plain("the service will crash before it commits the outcome",
			"サービスは結果をコミットする前にクラッシュする", crashes(BeforeCommit))),
		within(plain("the service will crash after it has committed the outcome",
			"サービスは結果をコミットした後にクラッシュする", crashes(AfterCommit))),
		within(plain("the service crashes", "サービスがクラッシュする", func(ctx context.Context, w *world) error {
			w.against.Inside.Crash()
			return w.ended(ctx)
		})),
		within(plain("the service is started again", "サービスが再起動する", func(_ context.Context, w *world) error {
			return w.against.Inside.Restart()
		})),
		within(plain("the recovery makes its round", "回復処理が巡回する", func(ctx context.Context, w *world) error {
			return w.against.Inside.Recover(ctx)
		})),
		within(plain("the store is away", "ストアに接続できない", func(_ context.Context, w *world) error {
			w.against.Inside.StoreAway(true)
			return nil
		})),
		within(plain("the store is back", "ストアが復旧する", func(_ context.Context, w *world) error {
			w.against.Inside.StoreAway(false)
			return nil
		})),
		within(sentence("the service serves each caller {n} requests a second", "the service serves each caller 1 requests a second",
			"サービスは呼び出し元ごとに毎秒{n}件だけ受け付ける", "サービスは呼び出し元ごとに毎秒1件だけ受け付ける",
			func(_ context.Context, w *world, b blanks) error {
				perSecond, err := b.n()
				if err != nil {
					return err
				}
				return w.against.Inside.LimitRate(perSecond)
			})),
		within(plain("the next request meets a bug", "次の要求が不具合に当たる", func(_ context.Context, w *world) error {
			w.against.Inside.Bug()
			return nil
		})),
	}
}

// pass has time go by for everybody in the scenario.
func (w *world) pass(ctx context.Context, d time.Duration) error {
	for _, p := range w.people {
		if err := w.against.Inside.Pass(ctx, p.Actor, d); err != nil {
			return err
		}
	}
	return nil
}
