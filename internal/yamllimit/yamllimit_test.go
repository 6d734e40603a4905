package yamllimit

import (
	"fmt"
	"strings"
	"testing"
)

func TestCheckCountsAliasesEachTime(t *testing.T) {
	const values, size = 1000, 10_000
	nested := "plain: [" + strings.Repeat("1,", 200) + "]\na: &l0 [x, x]\n"
	for i := range 9 {
		nested += fmt.Sprintf("b%d: &l%d [*l%d, *l%d]\n", i, i+1, i, i)
	}
	long := strings.Repeat("x", size/20)
	for name, tt := range map[string]struct{ text, want string }{
		"plain":              {"a: {b: [1, 2, text]}", ""},
		"an alias":           {"a: &a {b: 1}\nc: *a", ""},
		"text with asterisk": {"a: |\n  2 * 3 & more", ""},
		"long, once":         {"a: &a " + long + "\nb: [*a, *a]", ""},
		"long, many times":   {"a: &a " + long + "\nb: [" + strings.Repeat("*a,", 50) + "]", "aliases expand"},
		"a long key":         {"a: &a {" + long + ": 1}\nb: [" + strings.Repeat("*a,", 50) + "]", "aliases expand"},
		"merged":             {"a: &a {k: " + long + "}\nb:" + strings.Repeat("\n- {<<: *a}", 50), "aliases expand"},
		"nested":             {nested, "more than 1000 YAML values"},
		"many values":        {"[" + strings.Repeat("1,", values+1) + "]", "more than 1000 YAML values"},
		"many lines":         {strings.Repeat("-\n", values+1), "more than 1000 YAML values"},
		"UTF-16":             {utf16("a: b"), "use UTF-8"},
		"behind a quotation": {"# \"\na: [" + strings.Repeat("1,", values+1) + "]", "more than 1000 YAML values"},
		"in a plain text":    {"a: b\"c\nd: [" + strings.Repeat("1,", values+1) + "]", "more than 1000 YAML values"},
		"many returns":       {strings.Repeat("-\r", values+1), "more than 1000 YAML values"},
		"many new lines":     {strings.Repeat("-\u0085", values+1), "more than 1000 YAML values"},
		"many separators":    {strings.Repeat("-\u2028", values+1), "more than 1000 YAML values"},
		"many in one line":   {strings.Repeat("- ", values+1), "more than 1000 YAML values"},
		"commas of JSON":     {`{"a": "` + strings.Repeat(",", values+1) + `"}`, ""},
		"invalid":            {"a: *none", "unknown anchor"},
	} {
		err := Check([]byte(tt.text), values, size)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

// utf16 returns ASCII text encoded in UTF-16, which YAML permits.
func utf16(text string) string {
	var encoded strings.Builder
	encoded.WriteString("\xff\xfe")
	for _, char := range []byte(text) {
		encoded.Write([]byte{char, 0})
	}
	return encoded.String()
}
