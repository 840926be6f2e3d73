package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// parts of a SQLite file that is in use, by their endings.
var fileParts = []string{"", "-wal", "-shm"}

// copied has a copy of a file in its place: the same bytes, another file.
func copied(t *testing.T, file string) {
	t.Helper()
	bytes, err := os.ReadFile(file)
	require.NoError(t, err)
	beside := file + ".copy"
	require.NoError(t, os.WriteFile(beside, bytes, 0o600))
	require.NoError(t, os.Rename(beside, file))
}

// content is what is in the files, by their paths; nothing for one that is not there.
func content(t *testing.T, files ...string) map[string]string {
	t.Helper()
	in := map[string]string{}
	for _, file := range files {
		bytes, err := os.ReadFile(file)
		if !os.IsNotExist(err) {
			require.NoError(t, err)
		}
		in[file] = string(bytes)
	}
	return in
}

// A file that is deleted or replaced under a running service takes its log and its locks along, and so does a log. What
// is written then is lost, or spoils what is there now: so nothing is, not even at the end, whatever comes back meanwhile.
func TestAFileThatIsLostIsNeverWrittenAndServedAfterARestartOnly(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, file string){
		"deleted":           func(t *testing.T, file string) { require.NoError(t, os.Remove(file)) },
		"moved away":        func(t *testing.T, file string) { require.NoError(t, os.Rename(file, file+".away")) },
		"replaced":          copied,
		"its log deleted":   func(t *testing.T, file string) { require.NoError(t, os.Remove(file+"-wal")) },
		"its log replaced":  func(t *testing.T, file string) { copied(t, file+"-wal") },
		"its index deleted": func(t *testing.T, file string) { require.NoError(t, os.Remove(file+"-shm")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := onFile(t, sqliteFile(t)).with( // only its clients drive it
				"KAKUTEI_RECOVERY_INTERVAL", "0", "KAKUTEI_SWEEP_INTERVAL", "0")
			file := fileOf(g.env["KAKUTEI_DATABASE_URL"])
			i := g.start()
			first, second := paymentOf(i.placed("place-1"), "pay-1"), paymentOf(i.placed("place-2"), "pay-2")
			first.insistHere(i.running)
			var all []string
			for _, part := range fileParts {
				require.NoError(t, os.Link(file+part, filepath.Join(filepath.Dir(file), "kept"+part))) // what is lost keeps a name
				all = append(all, file+part, filepath.Join(filepath.Dir(file), "kept"+part))
			}
			lose(t, file)
			was := content(t, all...)

			second.isRefused(i.running)
			first.isRefused(i.running)
			i.becomesReady(false)
			assert.Contains(t, i.stderr.String(), "deleted or replaced")
			assert.Equal(t, was, content(t, all...), "nothing is written, here or there")

			for _, part := range fileParts { // everything is put back where it was
				_ = os.Remove(file + part)
				require.NoError(t, os.Link(filepath.Join(filepath.Dir(file), "kept"+part), file+part))
			}
			was = content(t, all...)
			second.isRefused(i.running)
			i.becomesReady(false)
			i.signal(syscall.SIGTERM)
			i.end()
			assert.Equal(t, 0, i.process.ProcessState.ExitCode())
			assert.Equal(t, was, content(t, all...), "not at the end either")

			for _, part := range fileParts {
				require.NoError(t, os.Remove(filepath.Join(filepath.Dir(file), "kept"+part)))
			}
			again := g.start()
			again.becomesReady(true)
			second.insistHere(again.running)
			g.whole(again.running, first, second)
		})
	}
}
