package gormstore_test

import (
	"testing"

	"kakutei/infrastructure/gateway"
	"kakutei/infrastructure/gateway/booktest"
	"kakutei/infrastructure/gormstore/gormtest"
	"kakutei/infrastructure/storetest"
)

func TestTheStoreKeepsTheContract(t *testing.T) {
	for name, database := range gormtest.All {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) storetest.Opened {
				d := database(t)
				return storetest.Opened{
					Work: d.Open(t, 16), Beside: d.Open(t, 16),
					LockTimeout: gormtest.LockTimeout, OneAtATime: name == "SQLite",
				}
			})
		})
	}
}

func TestTheBookKeepsTheContract(t *testing.T) {
	for name, database := range gormtest.All {
		t.Run(name, func(t *testing.T) {
			booktest.Run(t, func(t *testing.T) gateway.Book { return database(t).Open(t, 16).Book() })
		})
	}
}
