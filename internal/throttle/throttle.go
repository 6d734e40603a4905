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

// ErrThrottled is returned for a password that is rejected without a check, after too many wrong
// passwords.
var ErrThrottled = errors.New("too many wrong passwords")

// RetryAfter is the maximum delay between two checks on one server.
const RetryAfter = maxDelay

const (
	// maxDelay is the maximum delay between two checks.
	maxDelay = 30 * time.Second
	// failureAge is how long wrong passwords are counted.
	failureAge = 15 * time.Minute
	// loginAge is how long a login from an address protects the user at that address.
	loginAge = 24 * time.Hour
	// maxRecords is the maximum number of names and addresses in memory. The least recently used
	// entries are dropped first.
	maxRecords = 10_000
	// maxKeyBytes is the number of bytes in a user name that are compared.
	maxKeyBytes = 256
)

// Numbers of wrong passwords that cause no delay: for one user from one address, for all users from
// one address, and for one user from all addresses.
const (
	freeTogether = 5
	freeAddress  = 50
	freeUser     = 100
)

// Throttle slows down clients that guess passwords. After a few wrong passwords, each additional
// wrong password doubles the delay until the next check, up to half a minute.
//
// An attacker cannot lock a user out permanently, because rejected attempts do not count, and wrong
// passwords expire. At an address from which the user has logged in, wrong passwords for other
// users or from other addresses do not count.
//
// Servers that check the same passwords share the attempts. Each server permits its share, so a
// client that uses all servers is not faster than a client that uses a single server.
type Throttle struct {
	// Servers returns the number of servers that check the same passwords. If it is nil, the number
	// is 1.
	Servers func() int

	now func() time.Time

	mu      sync.Mutex
	records *lru.Cache // maps a key to a *record
	logins  *lru.Cache // maps a key to the time of the user's last login from an address
}

// key identifies whose wrong passwords are counted. One of its two fields can be empty.
type key struct{ user, address string }

// record contains the attempts for a key.
type record struct {
	failures  int
	trying    int // number of checks in progress
	last, end time.Time
}

// New returns a Throttle without records.
func New() *Throttle {
	return &Throttle{now: time.Now, records: lru.New(maxRecords), logins: lru.New(maxRecords)}
}

// Try begins a password check or fails with ErrThrottled. The caller must call end with the result:
// failed for a wrong password, right for the right password, or neither if the check could not be
// completed.
func (t *Throttle) Try(user, address string) (end func(failed, right bool), err error) {
	servers := 1
	if t.Servers != nil {
		servers = max(servers, t.Servers())
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now, user := t.now(), accountOf(user)
	together := key{user, address}
	limits := map[key]int{together: freeTogether}
	if since, ok := t.logins.Get(together); !ok || now.Sub(since.(time.Time)) > loginAge {
		limits[key{address: address}], limits[key{user: user}] = freeAddress, freeUser
	}
	for k, free := range limits {
		limits[k] = (free + servers - 1) / servers
	}
	for k, free := range limits {
		// Beyond the free attempts, only one password is checked at a time, so that concurrent
		// attempts are not faster.
		if r := t.of(k, now); r != nil && r.failures >= free && (now.Before(r.end) || r.trying > 0) {
			return nil, ErrThrottled
		}
	}
	records := map[*record]int{}
	for k, free := range limits {
		r := t.of(k, now)
		// Add the record only now. Otherwise, rejected attempts could evict other keys' records.
		if r == nil {
			r = &record{}
			t.records.Add(k, r)
		}
		r.trying++
		records[r] = free
	}
	return func(failed, right bool) {
		t.mu.Lock()
		defer t.mu.Unlock()
		now := t.now()
		for r, free := range records {
			r.trying--
			if failed {
				r.failures, r.last = r.failures+1, now
				r.end = now.Add(wait(r.failures-free) * time.Duration(servers))
			}
		}
		if right {
			t.logins.Add(together, now)
			t.records.Remove(together)
		}
	}, nil
}

// accountOf returns the same text for all spellings of a user name, because directories ignore
// case, extra spaces and differences in Unicode normalization.
func accountOf(user string) string {
	user = norm.NFKC.String(user[:min(len(user), maxKeyBytes)])
	return strings.Join(strings.Fields(strings.ToLower(user)), " ")
}

// of returns a key's record, or nil if it does not exist. It resets expired failures.
func (t *Throttle) of(k key, now time.Time) *record {
	existing, ok := t.records.Get(k)
	if !ok {
		return nil
	}
	r := existing.(*record)
	if now.Sub(r.last) > failureAge {
		r.failures = 0
	}
	return r
}

// wait returns the delay before the next check. beyond is the number of wrong passwords above the
// limit without a delay. It is negative below that limit.
func wait(beyond int) time.Duration {
	switch {
	case beyond < 0:
		return 0
	case beyond > 5:
		return maxDelay
	}
	return min(time.Second<<beyond, maxDelay)
}
