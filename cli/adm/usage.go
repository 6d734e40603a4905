package adm

import (
	"bytes"
	"io"
)

// oldUsage replaces the column headings of `oc adm top nodes` with OpenShift 3's headings, such as
// CPU% instead of CPU(%).
type oldUsage struct{ io.Writer }

// Write writes text with the old headings. Headings keep their width, so that the columns stay
// aligned.
func (u oldUsage) Write(text []byte) (int, error) {
	old := bytes.ReplaceAll(text, []byte("(%)"), []byte("%  "))
	if _, err := u.Writer.Write(old); err != nil {
		return 0, err
	}
	return len(text), nil
}
