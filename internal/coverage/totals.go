package coverage

// Count contains the number of rows in each state.
type Count map[State]int

// Rows returns the total number of rows.
func (c Count) Rows() int {
	n := 0
	for _, rows := range c {
		n += rows
	}
	return n
}

// SectionTotal contains a section's row counts.
type SectionTotal struct {
	Section string
	Count   Count
}

// DocumentTotal contains the row counts of a document and its sections.
type DocumentTotal struct {
	Document string
	Count    Count
	Sections []SectionTotal
}

// Totals counts rows by document and section, both in the order of their first rows.
func Totals(rows []Row) []DocumentTotal {
	var totals []DocumentTotal
	documents := map[string]int{}
	sections := map[[2]string]int{}
	for _, row := range rows {
		d, ok := documents[row.Document]
		if !ok {
			d = len(totals)
			documents[row.Document] = d
			totals = append(totals, DocumentTotal{Document: row.Document, Count: Count{}})
		}
		total := &totals[d]
		key := [2]string{row.Document, row.Section}
		s, ok := sections[key]
		if !ok {
			s = len(total.Sections)
			sections[key] = s
			total.Sections = append(total.Sections, SectionTotal{Section: row.Section, Count: Count{}})
		}
		total.Count[row.State]++
		total.Sections[s].Count[row.State]++
	}
	return totals
}

// Sum adds up the counts of all documents.
func Sum(totals []DocumentTotal) Count {
	sum := Count{}
	for _, total := range totals {
		for state, rows := range total.Count {
			sum[state] += rows
		}
	}
	return sum
}
