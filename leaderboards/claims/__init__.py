"""Claims of papers as tests of records: each entry's verdict, and the page of all of them."""
