package registryclient

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

const (
	// usualHeld is what all work of an owner may hold at a time, in bytes of answers; what is
	// decoded of an answer takes a few times its size. Four hundred images have about twelve
	// megabytes of manifests and configurations, at most imageSize each. mostHeld is the most that
	// imports of very many images raise it to.
	usualHeld, mostHeld, imageSize = 12 << 20, 64 << 20, 32 << 10
	// maxOpen and maxOpenByOwner bound the pieces of work.
	maxOpen, maxOpenByOwner = 32, 4
	// reserve is left to work that has read less than smallWork, so that owners with large work do
	// not keep all others out.
	reserve, smallWork = 8 << 20, 256 << 10
)

// Budget bounds how much of registries' answers a process holds at a time: for each owner, and for
// two such owners and the reserve in total.
type Budget struct {
	// perOwner is in bytes.
	perOwner int64

	mu     sync.Mutex
	total  usage
	owners map[string]usage
}

type usage struct {
	bytes int64
	open  int
}

// NewBudget returns a budget in which an owner can read so many images at once.
func NewBudget(images int) *Budget {
	if images == 0 || images > mostHeld/imageSize {
		images = mostHeld / imageSize
	}
	return &Budget{perOwner: max(usualHeld, int64(images)*imageSize)}
}

// ErrBusy is the error of work that would exceed the budget now and may be repeated later.
var ErrBusy = errors.New("too much is read from registries at the moment: try again later")

// Open begins a piece of work of an owner, such as an import into a project. Errors: ErrBusy.
func (b *Budget) Open(owner string) (*Account, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.total.open >= maxOpen || b.owners[owner].open >= maxOpenByOwner {
		return nil, ErrBusy
	}
	account := &Account{budget: b, owner: owner, open: 1}
	b.add(account, 0, 1)
	return account, nil
}

// Join begins a piece of work of an owner that has a bound of number of its own.
func (b *Budget) Join(owner string) *Account { return &Account{budget: b, owner: owner} }

// add changes what is used. The caller holds the lock.
func (b *Budget) add(a *Account, bytes int64, open int) {
	a.bytes += bytes
	b.total.bytes, b.total.open = b.total.bytes+bytes, b.total.open+open
	if b.owners == nil {
		b.owners = map[string]usage{}
	}
	used := b.owners[a.owner]
	used.bytes, used.open = used.bytes+bytes, used.open+open
	if b.owners[a.owner] = used; used == (usage{}) {
		delete(b.owners, a.owner)
	}
}

// Account is what one piece of work uses of a budget. Nil is an account without a budget.
type Account struct {
	budget *Budget
	owner  string
	open   int
	bytes  int64 // under the budget's lock
}

// take adds bytes that were read.
func (a *Account) take(bytes int64) error {
	if a == nil {
		return nil
	}
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	limit := 2 * a.budget.perOwner
	if a.bytes+bytes <= smallWork {
		limit += reserve
	}
	switch {
	case a.budget.owners[a.owner].bytes+bytes > a.budget.perOwner:
		return fmt.Errorf("what is read at once for a project is more than %d bytes: read less", a.budget.perOwner)
	case a.budget.total.bytes+bytes > limit:
		return ErrBusy
	}
	a.budget.add(a, bytes, 0)
	return nil
}

// Reader returns a reader whose bytes count as used until the work ends. Errors: ErrBusy.
func (a *Account) Reader(content io.Reader) io.Reader { return &counted{content, a} }

type counted struct {
	io.Reader
	account *Account
}

// Read reads what the budget allows.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if busy := c.account.take(int64(n)); busy != nil {
		return 0, busy
	}
	return n, err
}

// Close ends the work and gives back what it used. It may be called once.
func (a *Account) Close() {
	if a == nil {
		return
	}
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	a.budget.add(a, -a.bytes, -a.open)
}
