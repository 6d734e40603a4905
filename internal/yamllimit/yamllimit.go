// Package yamllimit limits the size to which untrusted YAML expands. An alias takes three bytes in
// YAML, but JSON contains a copy of its value, so 200 KiB of YAML can expand to gigabytes. The
// parser limits only the number of aliases, not the size of their values.
package yamllimit

import (
	"bytes"
	"errors"
	"fmt"
	"sync"

	"go.yaml.in/yaml/v2"
)

// Check returns an error if the first document in text exceeds a limit. values is the maximum
// number of values, and size is the maximum number of bytes as JSON. The value of an alias is
// counted each time it is used. Check also returns an error for an invalid document.
func Check(text []byte, values, size int) error {
	if bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) {
		return errors.New("it is UTF-16; use UTF-8")
	}
	if Count(text) > values {
		return tooManyValues(values)
	}
	if !bytes.ContainsRune(text, '*') { // without aliases, YAML does not expand
		return nil
	}
	document, err := decode(text)
	if err != nil {
		return fmt.Errorf("parse YAML: %w", err)
	}
	budget := budget{values, size}
	budget.take(document)
	switch {
	case budget.values < 0:
		return tooManyValues(values)
	case budget.size < 0:
		return fmt.Errorf("its aliases expand it to more than %d bytes", size)
	}
	return nil
}

func tooManyValues(limit int) error { return fmt.Errorf("it has more than %d YAML values", limit) }

// one ensures that only one decoder runs at a time, because a document with many aliases can
// require a lot of memory. Aliases of a string share its memory, but aliases of maps and lists do
// not.
var one = &sync.Mutex{}

// decode decodes YAML as sigs.k8s.io/yaml does before it encodes JSON.
func decode(text []byte) (document any, err error) {
	one.Lock()
	defer one.Unlock()
	defer func() {
		if problem := recover(); problem != nil {
			err = errors.New("the parser failed")
		}
	}()
	err = yaml.Unmarshal(text, &document)
	return document, err
}

// budget is the size that remains for a document.
type budget struct{ values, size int }

// take subtracts a value's size. It stops once the budget is used up.
func (b *budget) take(value any) {
	const other = 8 // size of numbers, booleans and null
	if b.values--; b.values < 0 || b.size < 0 {
		return
	}
	switch typed := value.(type) {
	case string:
		b.size -= len(typed)
	case []any:
		for _, element := range typed {
			b.take(element)
		}
	case map[any]any:
		for key, element := range typed {
			if text, ok := key.(string); ok {
				b.size -= len(text)
			}
			b.take(element)
		}
	default:
		b.size -= other
	}
}
