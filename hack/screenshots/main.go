// Command screenshots creates the guide's pictures from the screenshots that the console tests
// take:
//
//	CONSOLE_SCREENSHOTS=/tmp/screenshots go test ./test/scenario/console
//	go run ./hack/screenshots /tmp/screenshots docs/console
//
// It replaces the pictures that exist in the second directory, and reduces their colors to a
// palette. For a new picture, first create an empty file there: `touch docs/console/NAME.png`.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/slipway-platform/slipway/internal/atomicfile"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: screenshots FROM TO")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "screenshots:", err)
		os.Exit(1)
	}
}

func run(from, to string) error {
	names, err := filepath.Glob(filepath.Join(to, "*.png"))
	if err != nil {
		return err
	}
	for _, target := range names {
		name := filepath.Base(target)
		content, err := os.ReadFile(filepath.Join(from, name))
		if errors.Is(err, fs.ErrNotExist) {
			fmt.Printf("%s: no new screenshot\n", name)
			continue
		}
		if err != nil {
			return err
		}
		picture, err := png.Decode(bytes.NewReader(content))
		if err != nil {
			return fmt.Errorf("read %q: %w", name, err)
		}
		var small bytes.Buffer
		encoder := png.Encoder{CompressionLevel: png.BestCompression}
		if err := encoder.Encode(&small, reduce(picture)); err != nil {
			return fmt.Errorf("write %q: %w", name, err)
		}
		if err := atomicfile.Write(target, small.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// paletteSize is the number of colors in a picture. Most of the colors are used for antialiased
// text.
const paletteSize = 64

// reduce returns a picture reduced to its most frequent colors. Every other color is replaced with
// the nearest palette color.
func reduce(picture image.Image) *image.Paletted {
	bounds := picture.Bounds()
	counts := map[color.RGBA]int{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			counts[rgba(picture.At(x, y))]++
		}
	}
	colors := make([]color.RGBA, 0, len(counts))
	for c := range counts {
		colors = append(colors, c)
	}
	number := func(c color.RGBA) int { return int(c.R)<<16 | int(c.G)<<8 | int(c.B) }
	slices.SortFunc(colors, func(a, b color.RGBA) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return number(a) - number(b)
	})
	var palette color.Palette
	for _, c := range colors[:min(paletteSize, len(colors))] {
		palette = append(palette, c)
	}
	nearest := map[color.RGBA]uint8{}
	for _, c := range colors {
		nearest[c] = uint8(palette.Index(c))
	}
	result := image.NewPaletted(bounds, palette)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			result.SetColorIndex(x, y, nearest[rgba(picture.At(x, y))])
		}
	}
	return result
}

func rgba(c color.Color) color.RGBA { return color.RGBAModel.Convert(c).(color.RGBA) }
