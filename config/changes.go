package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Changes returns the keys whose values differ between two configurations, in the format of
// Ignored: NodeConfig keys have the prefix "NodeConfig: ". It treats a list as a single value. If
// the scheduler's policy file has changed, it returns the key that specifies the file.
func Changes(before, after *Config) ([]string, error) {
	var keys []string
	for _, pair := range []struct {
		prefix   string
		old, new any
	}{{"", before.Master, after.Master}, {nodeKind + ": ", before.Node, after.Node}} {
		old, err := tree(pair.old)
		if err != nil {
			return nil, err
		}
		updated, err := tree(pair.new)
		if err != nil {
			return nil, err
		}
		for _, key := range differences("", old, updated) {
			keys = append(keys, pair.prefix+key)
		}
	}
	if !reflect.DeepEqual(before.Scheduler, after.Scheduler) && !slices.Contains(keys, schedulerFile) {
		keys = append(keys, schedulerFile)
	}
	return keys, nil
}

// tree converts a configuration to maps, lists and plain values.
func tree(value any) (any, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("compare configurations: %w", err)
	}
	var root any
	if err := json.Unmarshal(text, &root); err != nil {
		return nil, fmt.Errorf("compare configurations: %w", err)
	}
	return root, nil
}

func differences(path string, old, updated any) (keys []string) {
	before, wasBlock := old.(map[string]any)
	after, isBlock := updated.(map[string]any)
	if !(wasBlock || old == nil) || !(isBlock || updated == nil) || !wasBlock && !isBlock {
		if reflect.DeepEqual(old, updated) {
			return nil
		}
		return []string{path}
	}
	all := map[string]any{} // treat a missing block as an empty one
	maps.Copy(all, before)
	maps.Copy(all, after)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		at := name
		if path != "" {
			at = path + "." + name
		}
		keys = append(keys, differences(at, before[name], after[name])...)
	}
	return keys
}

// Below reports whether key is one of keys, or is in a block that keys contains.
func Below(key string, keys []string) bool {
	return slices.ContainsFunc(keys, func(block string) bool { return within(key, block) })
}
