package gormstore_test

import (
	"testing"
	"time"

	"kakutei/infrastructure/gateway"
	"kakutei/infrastructure/gateway/booktest"
	"kakutei/infrastructure/gormstore/gormtest"
	"kakutei/infrastructure/storetest"
)

func TestTheStoreKeepsTheContract(t *testing.T) {
	for name, database := range gormtest.All {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T, atLeast time.Duration) storetest.Opened {
				d, lockTimeout := database(t), max(atLeast, gormtest.LockTimeout)
				return storetest.Opened{
					Work: d.OpenWaiting(t, 16, lockTimeout), Beside: d.OpenWaiting(t, 16, lockTimeout),
					LockTimeout: lockTimeout, OneAtATime: name == "SQLite",
				}
			})
		})
	}
}

func TestTheBookKeepsTheContract(t *testing.T) {
	for name, database := range gormtest.All {
		t.Run(name, func(t *testing.T) {
			booktest.Run(t, func(t *testing.T) gateway.Book {
				return database(t).OpenWaiting(t, 16, time.Minute).Book() // what is tested is no waiting
			})
		})
	}
}
