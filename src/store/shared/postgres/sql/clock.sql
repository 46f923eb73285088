SELECT {now}, {last}
