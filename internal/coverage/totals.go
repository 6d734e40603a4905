package coverage

// Count is the number of rows by state.
type Count map[State]int

// Rows returns the number of all rows.
func (c Count) Rows() int {
	n := 0
	for _, rows := range c {
		n += rows
	}
	return n
}

// SectionTotal is the count of one section.
type SectionTotal struct {
	Section string
	Count   Count
}

// DocumentTotal is the count of one document and of its sections.
type DocumentTotal struct {
	Document string
	Count    Count
	Sections []SectionTotal
}

// Totals counts rows by document and section, both in the order of their first row.
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

// Sum adds the counts of all documents.
func Sum(totals []DocumentTotal) Count {
	sum := Count{}
	for _, total := range totals {
		for state, rows := range total.Count {
			sum[state] += rows
		}
	}
	return sum
}
