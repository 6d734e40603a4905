package process

import (
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"regexp"
	"strconv"
	"strings"
)

// Character classes in expressions.
const (
	lower   = "abcdefghijklmnopqrstuvwxyz"
	upper   = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits  = "0123456789"
	symbols = "~!@#$%^&*()-_+={}[]\\|<,>.?/\"';:`"
)

// maxGenerated limits the number of random characters that are generated for one range. maxValue
// limits the total for all ranges in a pattern.
const (
	maxGenerated = 255
	maxValue     = 1 << 16
)

// classes replaces the escape sequences of classes with their characters.
var classes = strings.NewReplacer(`\w`, lower+upper+digits+"_", `\d`, digits, `\a`, lower+upper+digits, `\A`, symbols)

var (
	generator = regexp.MustCompile(`\[([a-zA-Z0-9\-\\]+)\](\{([0-9]+)\})`)
	span      = regexp.MustCompile(`([0-9]-[0-9]|[a-z]-[a-z]|[A-Z]-[A-Z])`)
)

// Expression generates a random value from a pattern such as "user[A-Z0-9]{4}". It replaces each
// range that has a count with that many random characters from the range, and keeps the rest of the
// pattern. \w means letters, digits and the underscore, \d digits, \a letters and digits, and \A
// symbols. It returns an error if the bounds of a range are reversed. A count must be between 1 and
// 255, and the sum of the counts must not exceed 65,536. The same seed generates the same value.
func Expression(pattern string, seed [32]byte) (string, error) {
	source := mathrand.New(mathrand.NewChaCha8(seed))
	var failure error
	total := 0
	value := generator.ReplaceAllStringFunc(pattern, func(match string) string {
		parts := generator.FindStringSubmatch(match)
		count, err := strconv.Atoi(parts[3])
		if err != nil || count < 1 || count > maxGenerated {
			failure = fmt.Errorf("range must be within [1-%d] characters (%s)", maxGenerated, parts[3])
			return ""
		}
		if total += count; total > maxValue {
			failure = fmt.Errorf("the ranges generate more than %d characters in total", maxValue)
			return ""
		}
		alphabet, err := expand(parts[1])
		if err != nil {
			failure = err
			return ""
		}
		return pick(alphabet, count, source)
	})
	return value, failure
}

// expand returns the characters of a range such as "a-zA-Z0-9" or `\w`.
func expand(text string) (string, error) {
	var failure error
	expanded := span.ReplaceAllStringFunc(classes.Replace(text), func(match string) string {
		if match[0] > match[2] {
			failure = fmt.Errorf("invalid range specified: %s", match)
			return ""
		}
		var all []byte
		for char := match[0]; char <= match[2]; char++ {
			all = append(all, char)
		}
		return string(all)
	})
	var unique strings.Builder
	for _, char := range expanded {
		if !strings.ContainsRune(unique.String(), char) {
			unique.WriteRune(char)
		}
	}
	return unique.String(), failure
}

func pick(alphabet string, count int, source *mathrand.Rand) string {
	chars := make([]byte, count)
	for i := range chars {
		chars[i] = alphabet[source.IntN(len(alphabet))]
	}
	return string(chars)
}

// unpredictable returns a random seed.
func unpredictable(string) (seed [32]byte) {
	rand.Read(seed[:]) // rand.Read never returns an error
	return seed
}
