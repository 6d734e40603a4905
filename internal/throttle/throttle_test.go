package throttle

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// guesser tries passwords with a clock that advances only on request.
type guesser struct {
	*Throttle
	clock time.Time
}

func newGuesser() *guesser {
	g := &guesser{New(), time.Unix(1000, 0)}
	g.now = func() time.Time { return g.clock }
	return g
}

// guess tries wrong passwords until one is rejected without a check, and returns the number of
// passwords checked.
func (g *guesser) guess(user, address string, maximum int) (looked int) {
	for range maximum {
		end, err := g.Try(user, address)
		if err != nil {
			return looked
		}
		end(true, false)
		looked++
	}
	return looked
}

// right tries the right password.
func (g *guesser) right(user, address string) bool {
	end, err := g.Try(user, address)
	if err == nil {
		end(false, true)
	}
	return err == nil
}

func TestGuessesForUserAreDelayed(t *testing.T) {
	g := newGuesser()
	if got := g.guess("alice", "a", 100); got != freeTogether {
		t.Errorf("%d passwords are checked at the same time", got)
	}
	var waits []time.Duration
	for range 7 {
		start := g.clock
		for g.guess("alice", "a", 1) == 0 {
			g.clock = g.clock.Add(time.Second)
		}
		waits = append(waits, g.clock.Sub(start).Round(time.Second))
	}
	if got := fmt.Sprint(waits); got != "[1s 2s 4s 8s 16s 30s 30s]" {
		t.Errorf("the waits are %s", got)
	}
}

func TestServersShareTheAttempts(t *testing.T) {
	var guessers []*guesser
	for range 3 {
		g := newGuesser()
		g.Servers = func() int { return 3 }
		guessers = append(guessers, g)
	}
	total := 0
	for range 3600 { // the loop simulates an hour
		for _, g := range guessers {
			total += g.guess("alice", "a", 100)
			g.clock = g.clock.Add(time.Second)
		}
	}
	alone, g := 0, newGuesser()
	for range 3600 {
		alone += g.guess("alice", "a", 100)
		g.clock = g.clock.Add(time.Second)
	}
	if total > alone+alone/10 {
		t.Errorf("three servers check %d passwords, one checks %d", total, alone)
	}
}

func TestConcurrentGuessesDoNotBypassDelay(t *testing.T) {
	g := newGuesser()
	g.guess("alice", "a", 100)
	g.clock = g.clock.Add(maxDelay)
	end, err := g.Try("alice", "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Try("alice", "a"); err == nil {
		t.Error("a second password is checked at the same time as the first")
	}
	end(true, false)
}

func TestGuessesForManyUsersAreDelayed(t *testing.T) {
	g, looked := newGuesser(), 0
	for i := range 1000 {
		looked += g.guess(fmt.Sprint("user", i), "a", 1)
	}
	if looked != freeAddress {
		t.Errorf("%d passwords for many users are checked", looked)
	}
	g, looked = newGuesser(), 0
	for i := range 1000 {
		looked += g.guess("alice", fmt.Sprint("a", i), 1)
	}
	if looked != freeUser {
		t.Errorf("%d passwords from many addresses are checked", looked)
	}
}

func TestRejectedGuessesEvictNoRecords(t *testing.T) {
	g := newGuesser()
	for i := range freeUser {
		g.guess("alice", fmt.Sprint("a", i), 1)
	}
	for i := range freeAddress + maxRecords {
		g.guess(fmt.Sprint("user", i), "b", 1)
	}
	if got := g.guess("Alice", "c", 1); got != 0 {
		t.Error("guesses for the user are forgotten")
	}
}

func TestUserCanLogInAfterDelay(t *testing.T) {
	g := newGuesser()
	g.guess("alice", "a", 100)
	if g.right("alice", "a") {
		t.Error("the right password is checked while it must wait")
	}
	if g.clock = g.clock.Add(maxDelay); !g.right("alice", "a") {
		t.Error("the user waits longer than the longest wait")
	}
	if got := g.guess("alice", "a", 3); got != 3 {
		t.Errorf("after a login %d wrong passwords are checked", got)
	}
	g.right("alice", "a")
	for i := range 1000 {
		g.guess(fmt.Sprint("user", i), "a", 1)
		g.guess("alice", fmt.Sprint("b", i), 1)
	}
	if !g.right("alice", "a") {
		t.Error("guesses of others keep the user out at the usual address")
	}
	g.clock = g.clock.Add(failureAge + time.Second)
	if !g.right("bob", "a") || !g.right("alice", "c") {
		t.Error("guesses are not forgotten")
	}
}

func TestProviderErrorIsNotAGuess(t *testing.T) {
	g := newGuesser()
	for range 100 {
		end, err := g.Try("alice", "a")
		if err != nil {
			t.Fatal(err)
		}
		end(false, false)
	}
}

func TestSpellingsOfUserNameShareRecord(t *testing.T) {
	throttle := New()
	spellings := []string{"alice", "ALICE", " alice", "alice ", "\talice", "\uff41lice"}
	for i := range freeTogether {
		end, err := throttle.Try(spellings[i], "192.0.2.1")
		if err != nil {
			t.Fatal(err)
		}
		end(true, false)
	}
	if _, err := throttle.Try(spellings[freeTogether], "192.0.2.1"); !errors.Is(err, ErrThrottled) {
		t.Errorf("another spelling: %v", err)
	}
}
