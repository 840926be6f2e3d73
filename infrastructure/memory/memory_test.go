package memory_test

import (
	"testing"
	"time"

	"kakutei/infrastructure/memory"
	"kakutei/infrastructure/storetest"
)

func TestTheStoreKeepsTheContract(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Opened {
		s := memory.New(time.Now)
		return storetest.Opened{Work: s, Beside: s, LockTimeout: memory.DefaultLockTimeout, OneAtATime: true}
	})
}

func TestTheStoreThatDefersItsWritesKeepsTheContract(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Opened {
		s := memory.NewDeferring(memory.New(time.Now))
		return storetest.Opened{Work: s, Beside: s, LockTimeout: memory.DefaultLockTimeout, OneAtATime: true}
	})
}
