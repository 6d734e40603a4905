package component

import (
	"fmt"
	"slices"
)

// CheckOrder returns an error unless all entries can start: names are unique, every component in
// After exists, and there is no cycle.
func CheckOrder(entries []Entry) error {
	names, started := map[string]bool{}, map[string]bool{}
	for _, entry := range entries {
		if names[entry.Name()] {
			return fmt.Errorf("component %q is in the table twice", entry.Name())
		}
		names[entry.Name()] = true
	}
	for progress := true; progress; {
		progress = false
		for _, entry := range entries {
			blocked := slices.ContainsFunc(entry.After, func(name string) bool { return !started[name] })
			if !started[entry.Name()] && !blocked {
				started[entry.Name()], progress = true, true
			}
		}
	}
	var blocked []string
	for _, entry := range entries {
		if !started[entry.Name()] {
			blocked = append(blocked, entry.Name())
		}
	}
	if len(blocked) > 0 {
		return fmt.Errorf("components %q wait for each other or for a component that does not exist", blocked)
	}
	return nil
}
