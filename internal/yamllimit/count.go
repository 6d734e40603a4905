package yamllimit

import (
	"encoding/json"

	"github.com/slipway-platform/slipway/internal/jsonlimit"
)

// Count returns the number of separators between values in UTF-8 text without aliases. For JSON,
// the number is the same as in package jsonlimit. Other YAML has at most four values per separator,
// as in a line `- ? a : b`: an element, its mapping, a key and a value. Count also counts
// separators in strings and comments, because only a YAML parser can determine where these end.
func Count(text []byte) int {
	if json.Valid(text) {
		return (&jsonlimit.Counter{}).Count(text)
	}
	counter := counter{last: '-'} // a document can begin with an indicator
	for _, char := range text {
		counter.add(char)
	}
	return counter.values
}

// counter counts value separators: commas, brackets, line breaks, and indicators that follow
// another indicator on the same line, as in `- - - a`.
type counter struct {
	values int
	// last is the last character that is neither a space nor a tab. previous contains the last two
	// bytes.
	last     byte
	previous [2]byte
}

func (c *counter) add(char byte) {
	switch char {
	case ' ', '\t':
		c.previous = [2]byte{c.previous[1], char}
		return
	case ',', '[', '{', '\n', '\r':
		c.values++
	case '-', '?', ':':
		if c.last == '-' || c.last == '?' || c.last == ':' {
			c.values++
		}
	case '\x85': // the character "next line"
		if c.previous[1] == '\xc2' {
			c.values++
		}
	case '\xa8', '\xa9': // the line separator and the paragraph separator
		if c.previous == [2]byte{'\xe2', '\x80'} {
			c.values++
		}
	}
	c.last, c.previous = char, [2]byte{c.previous[1], char}
}
