package gateway_test

import (
	"testing"

	"kakutei/infrastructure/gateway"
	"kakutei/infrastructure/gateway/booktest"
)

func TestTheMemoryBookKeepsTheContract(t *testing.T) {
	booktest.Run(t, func(*testing.T) gateway.Book { return gateway.NewMemoryBook() })
}
