package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Changes lists the keys of which two configurations have different values, each as in `Ignored`; those of the NodeConfig with its name
// in front. Lists count as a whole.
func Changes(before, after *Config) ([]string, error) {
	var keys []string
	for _, part := range []struct {
		prefix     string
		old, young any
	}{{"", before.Master, after.Master}, {nodeKind + ": ", before.Node, after.Node}} {
		old, err := tree(part.old)
		if err != nil {
			return nil, err
		}
		young, err := tree(part.young)
		if err != nil {
			return nil, err
		}
		for _, key := range differences("", old, young) {
			keys = append(keys, part.prefix+key)
		}
	}
	return keys, nil
}

// tree is a configuration as maps, lists and plain values.
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

func differences(path string, old, young any) (keys []string) {
	before, wasBlock := old.(map[string]any)
	after, isBlock := young.(map[string]any)
	if !(wasBlock || old == nil) || !(isBlock || young == nil) || !wasBlock && !isBlock {
		if reflect.DeepEqual(old, young) {
			return nil
		}
		return []string{path}
	}
	all := map[string]any{} // a block that is missing is an empty one
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

// Below tells whether a key is one of keys or belongs to a block that is one of them.
func Below(key string, keys []string) bool {
	return slices.ContainsFunc(keys, func(block string) bool { return within(key, block) })
}
