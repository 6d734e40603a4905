// Package throttle slows down clients that guess passwords or tokens.
package throttle

import (
	"errors"
	"strings"
	"sync"
	"time"

	"golang.org/x/text/unicode/norm"
	"k8s.io/utils/lru"
)

// ErrThrottled rejects a password without a check, because too many wrong ones came before it.
var ErrThrottled = errors.New("too many wrong passwords")

// RetryAfter is the longest delay between two checks.
const RetryAfter = longestWait

const (
	// longestWait is the most that someone waits between two passwords, and forgotten how long wrong ones count.
	longestWait = 30 * time.Second
	forgotten   = 15 * time.Minute
	// trusted is how long an address counts as one from which a user logs in.
	trusted = 24 * time.Hour
	// remembered is how many names and addresses are known at a time; those not seen for longest go first.
	remembered = 10_000
	// maxKey is how much of a name counts, in bytes.
	maxKey = 256
)

// How many wrong passwords are free: for a user from one address, from one address for all users, and for one user from everywhere.
const (
	freeTogether = 5
	freeAddress  = 50
	freeUser     = 100
)

// Throttle slows down who guesses passwords. After some wrong ones each further one doubles the time until the next is looked at, up to half a minute.
//
// Nobody can keep a user out for ever: what is refused meanwhile does not count, wrong passwords are forgotten, and guesses for other users, or from
// other addresses, do not matter at an address from which the user has logged in.
type Throttle struct {
	now func() time.Time

	mu      sync.Mutex
	records *lru.Cache // of *record by key
	known   *lru.Cache // of time.Time by key: when a user last logged in from an address
}

// key is whose passwords are counted; one of the two may be empty.
type key struct{ user, address string }

// record is what is known of a key.
type record struct {
	wrong     int
	trying    int // now
	last, end time.Time
}

// New returns a Throttle without records.
func New() *Throttle {
	return &Throttle{now: time.Now, records: lru.New(remembered), known: lru.New(remembered)}
}

// Try begins the check of a password. Unless it is ErrThrottled, the caller tells how the check ended: with a wrong password, with the right one, or,
// when a provider was gone, with neither.
func (t *Throttle) Try(user, address string) (end func(wrong, right bool), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, user := t.now(), accountOf(user)
	together := key{user, address}
	limits := map[key]int{together: freeTogether}
	if since, ok := t.known.Get(together); !ok || now.Sub(since.(time.Time)) > trusted {
		limits[key{address: address}], limits[key{user: user}] = freeAddress, freeUser
	}
	for k, free := range limits {
		// Beyond what is free one password is looked at a time, so that many at once are no way around.
		if r := t.of(k, now); r != nil && r.wrong >= free && (now.Before(r.end) || r.trying > 0) {
			return nil, ErrThrottled
		}
	}
	records := map[*record]int{}
	for k, free := range limits {
		r := t.of(k, now)
		if r == nil { // only now, or what is refused could push out what is known of others
			r = &record{}
			t.records.Add(k, r)
		}
		r.trying++
		records[r] = free
	}
	return func(wrong, right bool) {
		t.mu.Lock()
		defer t.mu.Unlock()
		now := t.now()
		for r, free := range records {
			r.trying--
			if wrong {
				r.wrong, r.last = r.wrong+1, now
				r.end = now.Add(wait(r.wrong - free))
			}
		}
		if right {
			t.known.Add(together, now)
			t.records.Remove(together)
		}
	}, nil
}

// accountOf is what all spellings of a user name have in common that a provider may take for one: directories tell
// neither cases nor spaces around and between words apart, nor forms of one character.
func accountOf(user string) string {
	user = norm.NFKC.String(user[:min(len(user), maxKey)])
	return strings.Join(strings.Fields(strings.ToLower(user)), " ")
}

// of is the record of a key, nil where there is none.
func (t *Throttle) of(k key, now time.Time) *record {
	found, ok := t.records.Get(k)
	if !ok {
		return nil
	}
	r := found.(*record)
	if now.Sub(r.last) > forgotten {
		r.wrong = 0
	}
	return r
}

// wait is how long the next password is not looked at, after so many beyond those that are free.
func wait(beyond int) time.Duration {
	switch {
	case beyond < 0:
		return 0
	case beyond > 5:
		return longestWait
	}
	return min(time.Second<<beyond, longestWait)
}
