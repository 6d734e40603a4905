// Package htpasswd is the identity provider HTPasswdPasswordIdentityProvider: users and hashed passwords in a file as Apache's program
// htpasswd writes it, with bcrypt, MD5 (apr1) and SHA.
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

// Provider checks passwords against a file. A change of the file counts from the next login on.
type Provider struct {
	// File is the path of the file.
	File string

	// turns bounds how many passwords are compared at a time: who guesses must not take all processors.
	turns chan struct{}
	// cache keeps the content of the file; nil reads it at each login.
	cache *cache
	// compare is bcrypt's comparison; nil is that of the library.
	compare func(hash, password []byte) error
}

// New makes a provider that uses half of the processors at most.
func New(file string) Provider {
	return Provider{File: file, cache: &cache{}, turns: make(chan struct{}, (runtime.NumCPU()+1)/2)}
}

var _ idp.Password = Provider{}

// AuthenticatePassword looks the user up. A user whose hash is of an unknown form is refused, as a user who does not exist is.
func (p Provider) AuthenticatePassword(ctx context.Context, user, password string) (*idp.Identity, error) {
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

// matches compares the password of a user with the file's. It makes one comparison of bcrypt whoever the user is, so that the time does not tell
// who is in the file.
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

// nobody is the hash of a password that was thrown away.
const nobody = "$2a$10$/q7tUbEHOdutIYuEmc3OQezMcI0LwqPaMdadrFlBK2zC2wdk8oWKi"

// isBcrypt tells the hashes of bcrypt: $2a$, $2b$, $2x$, $2y$.
func isBcrypt(hash string) bool { return strings.HasPrefix(hash, "$2") }

// matchesOld compares a password with a hash of the forms before bcrypt: apr1 ($apr1$) or SHA ({SHA}).
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

// Check tells what is wrong with the file before the first login: it must be there.
func (p Provider) Check() error {
	_, err := read(p.File)
	if err != nil {
		return errors.Join(err, errors.New("make it with: slipway htpasswd set USER"))
	}
	return nil
}
