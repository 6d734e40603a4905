package registryclient

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

const (
	// defaultOwnerBytes is the default limit on the response bytes that all of an owner's work
	// keeps in memory. Decoded responses take several times as much memory. 400 images have about
	// 12 MB of manifests and configurations, with at most imageBytes per image. A larger number of
	// images per import raises the limit, up to maxOwnerBytes.
	defaultOwnerBytes, maxOwnerBytes, imageBytes = 12 << 20, 64 << 20, 32 << 10
	// maxOpen and maxOpenByOwner are the maximum numbers of open accounts, in total and per owner.
	maxOpen, maxOpenByOwner = 32, 4
	// reserve is available only to operations that have read less than smallWork bytes, so that
	// owners with large operations cannot block all others.
	reserve, smallWork = 8 << 20, 256 << 10
)

// Budget limits the bytes of registry responses that a process keeps in memory, per owner and in
// total. The total limit is twice the limit per owner, plus the reserve.
type Budget struct {
	// perOwner is the limit per owner, in bytes.
	perOwner int64

	mu     sync.Mutex
	total  usage
	owners map[string]usage
}

type usage struct {
	bytes int64
	open  int
}

// NewBudget returns a budget that allows an owner to read the given number of images at the same
// time.
func NewBudget(images int) *Budget {
	if images == 0 || images > maxOwnerBytes/imageBytes {
		images = maxOwnerBytes / imageBytes
	}
	return &Budget{perOwner: max(defaultOwnerBytes, int64(images)*imageBytes)}
}

// ErrBusy is returned for work that would currently exceed the budget. The caller can retry later.
var ErrBusy = errors.New("too many reads from registries are in progress; try again later")

// Open begins work for an owner, such as an import into a project. It can return ErrBusy.
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

// Join begins work for an owner. The caller must limit how much work runs at the same time.
func (b *Budget) Join(owner string) *Account { return &Account{budget: b, owner: owner} }

// add changes the usage. The caller must hold the lock.
func (b *Budget) add(a *Account, bytes int64, open int) {
	a.bytes += bytes
	b.total.bytes, b.total.open = b.total.bytes+bytes, b.total.open+open
	if b.owners == nil {
		b.owners = map[string]usage{}
	}
	total := b.owners[a.owner]
	total.bytes, total.open = total.bytes+bytes, total.open+open
	if b.owners[a.owner] = total; total == (usage{}) {
		delete(b.owners, a.owner)
	}
}

// Account tracks the usage of one piece of work. A nil account has no limit.
type Account struct {
	budget *Budget
	owner  string
	open   int
	bytes  int64 // guarded by the budget's lock
}

// take adds the number of bytes that were read to the usage. It returns an error if the usage would
// exceed a limit.
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
		return fmt.Errorf("concurrent reads for a project exceed %d bytes; import fewer images at a time", a.budget.perOwner)
	case a.budget.total.bytes+bytes > limit:
		return ErrBusy
	}
	a.budget.add(a, bytes, 0)
	return nil
}

// Reader returns a reader whose bytes count toward the budget until the account is closed. Reading
// can return ErrBusy.
func (a *Account) Reader(content io.Reader) io.Reader { return &counted{content, a} }

type counted struct {
	io.Reader
	account *Account
}

// Read implements io.Reader. It returns an error if the budget is exceeded.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if busy := c.account.take(int64(n)); busy != nil {
		return 0, busy
	}
	return n, err
}

// Close ends the work and releases its usage. Call it exactly once.
func (a *Account) Close() {
	if a == nil {
		return
	}
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	a.budget.add(a, -a.bytes, -a.open)
}
