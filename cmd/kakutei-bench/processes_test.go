package main

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAProcessIsReadWhateverItsNameIs(t *testing.T) {
	const line = "42 (a ) 1 (b) S 7 42 42 0 -1 4194560 100 200 0 0 10 20 30 40 20 0 1 0 100 0 0"
	s, err := readStat([]byte(line))
	require.NoError(t, err)
	assert.Equal(t, stat{parent: 7, cpu: time.Second}, s)

	_, err = readStat([]byte("42 (a) S 7"))
	require.Error(t, err)
}

func TestATreeIsAProcessWithAllThatDescendFromIt(t *testing.T) {
	all := map[int]stat{1: {0, 100}, 10: {1, 1}, 11: {10, 2}, 12: {11, 4}, 20: {1, 50}}
	assert.Equal(t, time.Duration(7), treeOf(all, 10))
	assert.Equal(t, time.Duration(6), treeOf(all, 11))
}

func TestTheMachineHasWorkedForAllThatIsNotIdle(t *testing.T) {
	sum, err := readMachine("cpu  100 200 300 9999 9999 1 2 3 55 66\ncpu0 1 2 3\n")
	require.NoError(t, err)
	assert.Equal(t, 6060*time.Millisecond, sum)
}

func TestThisProcessHasUsedSomeOfTheMachine(t *testing.T) {
	for begun := time.Now(); time.Since(begun) < 50*time.Millisecond; {
		_ = begun
	}
	own, err := cpuOf(os.Getpid())
	require.NoError(t, err)
	machine, err := cpuOfMachine()
	require.NoError(t, err)
	assert.Positive(t, own)
	assert.Greater(t, machine, own)
	assert.Positive(t, ownCPU())

	_, err = cpuOf(1 << 30)
	require.Error(t, err)
}
