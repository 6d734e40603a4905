package etcdmember

import (
	"context"
	"errors"
	"time"
)

// statusTimeout is the timeout for a request to list the members, or for a request to one member.
const statusTimeout = 5 * time.Second

// State is a member with its status, or with the error from the status request.
type State struct {
	Member
	Status
	Err error
}

// Role returns "voter" or "learner".
func (m Member) Role() string {
	if m.Learner {
		return "learner"
	}
	return "voter"
}

// Problem returns the reason why a member is not healthy, or "".
func (s State) Problem() string {
	switch {
	case s.Err != nil:
		return s.Err.Error()
	case len(s.Errors) > 0:
		return s.Errors[0]
	case s.Leader == 0:
		return "it has no leader"
	}
	return ""
}

// States returns all members with their status.
func (c Client) States(ctx context.Context) ([]State, error) {
	listing, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	members, err := c.List(listing)
	if err != nil {
		return nil, err
	}
	var states []State
	for _, member := range members {
		state := State{Member: member, Err: errors.New("it has not started yet")}
		if member.ClientURL != "" {
			asking, cancel := context.WithTimeout(ctx, statusTimeout)
			state.Status, state.Err = c.Status(asking, member.ClientURL)
			cancel()
		}
		states = append(states, state)
	}
	return states, nil
}

// LastIndex returns the highest log index that any of the members has applied.
func LastIndex(states []State) (last uint64) {
	for _, state := range states {
		last = max(last, state.Index)
	}
	return last
}
