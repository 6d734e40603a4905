package adm

import (
	"bytes"
	"io"
)

// oldUsage rewrites the column headings of `oc adm top nodes` to those of OpenShift 3: CPU% instead
// of CPU(%).
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
