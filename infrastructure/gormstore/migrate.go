package gormstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"kakutei/application/port"
	"kakutei/migrations"
)

// ddl is how the tables come into a database.
type ddl struct {
	dialect goose.Dialect
	files   fs.FS
	dir     string
	open    func() (*sql.DB, error)
	options []goose.ProviderOption
	err     error
}

func postgresSchema(address string) ddl {
	// The first of several instances that start at once migrates; the others wait, 60 s at most.
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 60))
	return ddl{
		dialect: goose.DialectPostgres, files: migrations.Postgres, dir: "postgres", err: err,
		options: []goose.ProviderOption{goose.WithSessionLocker(locker)},
		open: func() (*sql.DB, error) {
			settings, err := pgx.ParseConfig(address)
			if err != nil {
				return nil, errors.New("the PostgreSQL address cannot be read")
			}
			if settings.ConnectTimeout == 0 {
				settings.ConnectTimeout = connectTimeout
			}
			return stdlib.OpenDB(*settings), nil
		},
	}
}

func sqliteSchema(path string) ddl {
	return ddl{
		dialect: goose.DialectSQLite3, files: migrations.SQLite, dir: "sqlite",
		open: func() (*sql.DB, error) {
			if err := mayWrite(path); err != nil {
				return nil, err
			}
			db, err := sql.Open("sqlite", sqliteAddress(path, 10*time.Second)+"&_txlock=immediate")
			if err == nil {
				db.SetMaxOpenConns(1)
			}
			return db, err
		},
	}
}

func (s ddl) provider() (*goose.Provider, error) {
	if s.err != nil {
		return nil, s.err
	}
	files, err := fs.Sub(s.files, s.dir)
	if err != nil {
		return nil, err
	}
	db, err := s.open()
	if err != nil {
		return nil, err
	}
	p, err := goose.NewProvider(s.dialect, db, files, s.options...)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return p, nil
}

// Migrate brings the database's schema up to date. Several processes may do so at once. A database that is newer than
// this program is left as it is.
func (s *Store) Migrate(ctx context.Context) (err error) {
	p, err := s.schema.provider()
	if err != nil {
		return fmt.Errorf("gormstore: migrations: %w", err)
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	for {
		current, target, err := p.GetVersions(ctx)
		if err == nil && current >= target {
			return nil
		}
		if err == nil {
			_, err = p.Up(ctx)
		}
		if err == nil {
			return nil
		}
		// SQLite has no lock that a migration could take beside its own transaction: of several processes that start at
		// once, all but one find the file busy or the work done, whatever that looks like to a statement.
		if s.schema.dialect != goose.DialectSQLite3 || !metAnother(ctx, p, current, err) || !pause(ctx, 5) {
			return fmt.Errorf("gormstore: migrations: %w", err)
		}
	}
}

// metAnother tells whether another process is at it: the file is busy, or the schema has moved on since it was current.
func metAnother(ctx context.Context, p *goose.Provider, current int64, err error) bool {
	now, versionErr := p.GetDBVersion(ctx)
	text := errors.Join(err, versionErr).Error() // goose drops the driver's error in some places
	return strings.Contains(text, "locked") || strings.Contains(text, "goose_db_version") || versionErr == nil && now > current
}

// proof changes as many pages of a SQLite file as a payment does at the most, each to something new: on a disk with less
// room than that for the log, the proof fails, too. Nothing but a write tells of a disk that is full.
const proof = `UPDATE readiness SET proof = randomblob(61440)`

// Ready tells whether the store can be read and written and its schema is at least this program's. Who asks stands in the
// line for connections as everybody does, and once more if that was in vain: a crowd is no broken store.
func (s *Store) Ready(ctx context.Context) error {
	err := s.works(ctx)
	if errors.Is(err, errNoConnection) && ctx.Err() == nil {
		err = s.works(ctx)
	}
	return err
}

func (s *Store) works(ctx context.Context) error {
	target, err := s.schema.target()
	if err != nil {
		return err
	}
	return s.do(ctx, port.Briefly, func(tx *session) error {
		var version int64
		q := statement{sql: "SELECT max(version_id) FROM goose_db_version WHERE is_applied"}
		if err := tx.ask(ctx, q, func(answer row) error { return answer.Scan(&version) }); err != nil {
			return fmt.Errorf("whether the migrations are applied (kakutei migrate): %w", err)
		}
		switch {
		case version < target:
			return port.ErrUnavailable.Because(fmt.Errorf("the schema is version %d, not %d: run kakutei migrate", version, target))
		case s.schema.dialect == goose.DialectSQLite3:
			return tx.later(write{statement: statement{sql: proof}})
		default:
			return nil
		}
	})
}

// target is the version of the newest migration in this program.
func (s ddl) target() (int64, error) {
	names, err := fs.Glob(s.files, s.dir+"/*.sql")
	if err != nil {
		return 0, err
	}
	var newest int64
	for _, name := range names {
		v, err := goose.NumericComponent(name)
		if err != nil {
			return 0, err
		}
		newest = max(newest, v)
	}
	return newest, nil
}
