// Package htpasswd implements HTPasswdPasswordIdentityProvider: users and password hashes in a file
// in the format of Apache's htpasswd program, with bcrypt, MD5 (apr1) and SHA hashes.
package htpasswd

import (
	"context"
	"errors"
	"runtime"
	"strings"

	"github.com/tg123/go-htpasswd"
	"golang.org/x/crypto/bcrypt"

	"github.com/slipway-platform/slipway/oauth/idp"
)

// Provider checks passwords against a file. It rereads the file if the file has changed since the
// last login, so that changes take effect immediately.
type Provider struct {
	// File is the path to the file.
	File string

	// turns limits the number of concurrent comparisons, so that clients that guess passwords
	// cannot use all CPUs.
	turns chan struct{}
	// cache caches the content of the file. If it is nil, each login reads the file.
	cache *cache
	// compare replaces bcrypt's comparison in tests. If it is nil, bcrypt's comparison is used.
	compare func(hash, password []byte) error
}

// New returns a provider that checks passwords on at most half of the CPUs, rounded up.
func New(file string) Provider {
	return Provider{File: file, cache: &cache{}, turns: make(chan struct{}, (runtime.NumCPU()+1)/2)}
}

var _ idp.Password = Provider{}

// AuthenticatePassword checks a password. If the format of the user's hash is not supported, it
// rejects the user in the same way as an unknown user.
func (p Provider) AuthenticatePassword(ctx context.Context,
	user, password string) (*idp.Identity, error) {
	if checkUser(user) != nil || password == "" {
		return nil, idp.ErrRefused
	}
	table, err := p.read()
	if err != nil {
		return nil, err
	}
	if p.turns != nil {
		select {
		case p.turns <- struct{}{}:
			defer func() { <-p.turns }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if !p.matches(table, user, password) {
		return nil, idp.ErrRefused
	}
	return &idp.Identity{UserName: user}, nil
}

func (p Provider) read() (table, error) {
	if p.cache == nil {
		return read(p.File)
	}
	return p.cache.read(p.File)
}

// matches compares a user's password with the hash in the file. It always runs one bcrypt
// comparison, so that the duration does not reveal which users are in the file.
func (p Provider) matches(t table, user, password string) bool {
	hash := t.hash(user)
	compare := p.compare
	if compare == nil {
		compare = bcrypt.CompareHashAndPassword
	}
	if isBcrypt(hash) {
		return compare([]byte(hash), []byte(password)) == nil
	}
	_ = compare([]byte(t.decoy), []byte(password))
	return matchesOld(hash, password)
}

// dummyHash is the hash of a discarded password.
const dummyHash = "$2a$10$/q7tUbEHOdutIYuEmc3OQezMcI0LwqPaMdadrFlBK2zC2wdk8oWKi"

// isBcrypt reports whether a hash is a bcrypt hash: $2a$, $2b$, $2x$ or $2y$.
func isBcrypt(hash string) bool { return strings.HasPrefix(hash, "$2") }

// matchesOld compares a password with an older hash: apr1 ($apr1$) or SHA ({SHA}).
func matchesOld(hash, password string) bool {
	switch {
	case strings.HasPrefix(hash, "$apr1$"):
		return matchesBy(htpasswd.AcceptMd5, hash, password)
	case strings.HasPrefix(hash, "{SHA}"):
		return matchesBy(htpasswd.AcceptSha, hash, password)
	}
	return false
}

func matchesBy(parse htpasswd.PasswdParser, hash, password string) bool {
	encoded, err := parse(hash)
	return err == nil && encoded != nil && encoded.MatchesPassword(password)
}

// Check returns an error if the file cannot be read. It reports a missing file before the first
// login.
func (p Provider) Check() error {
	_, err := read(p.File)
	if err != nil {
		return errors.Join(err, errors.New("create it with: slipway htpasswd set USER"))
	}
	return nil
}
