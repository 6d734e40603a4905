package config

import (
	"reflect"
	"strings"
)

// taggedField is a field of a struct with its key.
type taggedField struct {
	name  string
	index []int
}

// fields returns a struct's tagged fields, including the fields of inlined structs, in the order in
// which they are declared.
func fields(t reflect.Type) []taggedField {
	var list []taggedField
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
		case f.Anonymous && (name == "" || strings.Contains(options, "inline")):
			for _, inner := range fields(f.Type) {
				list = append(list, taggedField{name: inner.name, index: append([]int{i}, inner.index...)})
			}
		default:
			list = append(list, taggedField{name: name, index: []int{i}})
		}
	}
	return list
}

// suggestion returns `; did you mean x?`, where x is the most similar key. It returns "" if no key
// is similar.
func suggestion(misspelt string, allowed []taggedField) string {
	best, distance := "", 2+len(misspelt)/6
	for _, f := range allowed {
		if strings.EqualFold(f.name, misspelt) {
			best = f.name
			break
		}
		// The misspelled name is a short form, such as schedulerArgs for schedulerArguments.
		if stem := strings.TrimSuffix(misspelt, "s"); len(stem) > 3 && strings.HasPrefix(f.name, stem) && best == "" {
			best = f.name
		}
		if n := editDistance(misspelt, f.name); n < distance {
			best, distance = f.name, n
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// editDistance returns the Levenshtein distance between a and b in bytes. For very long names, it
// returns the length of the longer name.
func editDistance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return max(len(a), len(b))
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
